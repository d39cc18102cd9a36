// A middleware for Express: requests that reach the handlers behind it may be processed. `npm install express @gpd/consent`, then
// GPD_CONSENT_URL=… GPD_CONSENT_KEY=… node express.mjs
import { ConsentClient } from '@gpd/consent';
import express from 'express';

/**
 * Lets a request pass if the person granted the purpose; otherwise 403, or 401 if nobody is signed in.
 * @param {import('@gpd/consent').Consent} consent
 * @param {string} purpose
 * @param {(request: import('express').Request) => string | undefined} principalOf
 * @returns {import('express').RequestHandler}
 */
export function requireConsent(consent, purpose, principalOf) {
  return async (request, response, next) => {
    const principalId = principalOf(request);
    if (!principalId) {
      response.status(401).json({ error: 'sign-in-needed' });
      return;
    }
    // An error, such as for a wrong key, reaches Express's error handler, so nothing is processed either.
    const decision = await consent.canProcess({ principalId, purpose });
    if (decision.allowed) next();
    else response.status(403).json({ error: 'consent-needed', purpose, reason: decision.reason });
  };
}

if (process.argv[1]?.endsWith('express.mjs')) {
  const consent = ConsentClient.fromEnv();
  const app = express();
  // This header takes the place of your session, which knows the person.
  const principalOf = (request) => request.get('x-user');
  app.get('/offers', requireConsent(consent, 'newsletter', principalOf), (_request, response) => {
    response.json({ offers: ['for you'] });
  });
  const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}/offers`);
  });
}
