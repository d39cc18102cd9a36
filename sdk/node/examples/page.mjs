// A page that is rendered by what its visitor allows. `npm install express @gpd/consent`, then
// GPD_CONSENT_URL=… GPD_CONSENT_KEY=… node page.mjs
import { ConsentClient } from '@gpd/consent';
import express from 'express';

/**
 * @param {import('@gpd/consent').Consent} consent
 * @param {(request: import('express').Request) => string | undefined} principalOf who is signed in, if anybody is
 * @returns {import('express').RequestHandler}
 */
export function shopPage(consent, principalOf) {
  return async (request, response) => {
    const principalId = principalOf(request);
    const may = await consent.may(request, ['newsletter', 'ads'], { principalId });
    if (may.setCookie) response.append('Set-Cookie', may.setCookie);
    response.set('Cache-Control', 'private, no-store'); // the page is this visitor's
    response.send(`<h1>Shop</h1>${may.allows('ads') ? '<p>Seen elsewhere</p>' : ''}`);
  };
}

if (process.argv[1]?.endsWith('page.mjs')) {
  const consent = ConsentClient.fromEnv({ cookieDomain: process.env['COOKIE_DOMAIN'] });
  const app = express();
  // This header takes the place of your session, which knows the person.
  app.get(
    '/',
    shopPage(consent, (request) => request.get('x-user')),
  );
  const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}/`);
  });
}
