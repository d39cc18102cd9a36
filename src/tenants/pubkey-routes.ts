import type { Router } from 'express';
import { exactRouter } from '../http/exact-router.ts';
import { open, openMethods } from '../http/methods.ts';
import { Refusal } from '../lib/errors.ts';
import { sha256Text } from '../lib/hash.ts';
import type { PubKeyResponse } from '../schema/responses.ts';

/** The published key of a tenant, or null. */
export type FindPublicKey = (kid: string) => PubKeyResponse | null;

/** GET /_fp/pubkey?kid=KID: the same bytes for everybody, cacheable for five minutes (contract section 5). */
export function pubkeyRoutes(find: FindPublicKey): Router {
  const router = exactRouter();
  router
    .route('/_fp/pubkey')
    .get((request, response) => {
      const { kid } = request.query;
      if (typeof kid !== 'string' || kid === '') throw new Refusal('missing-kid', { headers: open });
      const found = find(kid);
      if (!found) throw new Refusal('unknown-kid', { headers: open });
      const body = JSON.stringify(found);
      response.set({
        ...open,
        // Age: the answer may come from a cache on the way.
        'access-control-expose-headers': 'Date, Age',
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'public, max-age=300',
        etag: `"${sha256Text(body)}"`,
      });
      response.send(body);
    })
    .all(openMethods('GET', 'HEAD'));
  return router;
}
