import { noteRefusal } from '../http/reply.ts';
import { page, type ServedRoute } from '../http/routes.ts';
import { sha256Text } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import type { PubKeyResponse } from '../schema/responses.ts';
import { ROUTES } from '../schema/routes.ts';

/**
 * GET /_fp/pubkey?kid=KID answers the seal key of a tenant: the same
 * bytes for everyone, cacheable for five minutes (contract section 5).
 */
export function pubkeyRoutes(find: (kid: string) => PubKeyResponse | null): readonly ServedRoute[] {
  return [
    page(ROUTES.getSealKey, ({ query: { kid } }, response) => {
      if (typeof kid !== 'string' || kid === '') throw new Refusal('missing-kid');
      const found = find(kid);
      if (!found) {
        noteRefusal('unknown-kid', kid);
        throw new Refusal('unknown-kid');
      }
      response.set({
        // The agent reads the clock from Date, and needs Age because a cache may have answered.
        'access-control-expose-headers': 'Date, Age',
        'cache-control': 'public, max-age=300',
        etag: `"${sha256Text(JSON.stringify(found))}"`,
      });
      response.json(found);
    }),
  ];
}
