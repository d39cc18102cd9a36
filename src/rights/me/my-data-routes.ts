import type { Router } from 'express';
import { exactRouter } from '../../http/exact-router.ts';
import { onlyMethods } from '../../http/methods.ts';
import { Refusal } from '../../lib/errors.ts';

/** GET /my-data?kid=KID: a page that a site can link to where gpd answers under the site's own origin. */
export function myDataRoutes(isTenant: (kid: string) => boolean): Router {
  const router = exactRouter();
  router
    .route('/my-data')
    .get((request, response) => {
      const { kid } = request.query;
      if (typeof kid !== 'string' || kid === '') throw new Refusal('missing-kid');
      if (!isTenant(kid)) throw new Refusal('unknown-kid');
      response.set('cache-control', 'no-store').render('my-data', { kid });
    })
    .all(onlyMethods('GET', 'HEAD'));
  return router;
}
