import type { Handlers } from '../../http/register.ts';
import { Refusal } from '../../lib/errors.ts';

/** GET /my-data?kid=KID: a page that a site can link to where gpd answers under the site's own origin. */
export function myDataRoutes(isTenant: (kid: string) => boolean): Handlers<'myData'> {
  return {
    myData({ query: { kid } }, response) {
      if (typeof kid !== 'string' || kid === '') throw new Refusal('missing-kid');
      if (!isTenant(kid)) throw new Refusal('unknown-kid');
      response.set('cache-control', 'no-store').render('my-data', { kid });
    },
  };
}
