// A middleware for Express: behind it, processing is permitted. `npm install express @gpd/consent`, then
// GPD_CONSENT_URL=… GPD_CONSENT_KEY=… node express.mjs
import { ConsentClient } from '@gpd/consent';
import express from 'express';

/**
 * Lets a request pass when the person granted the purpose; else 403, and 401 when nobody is signed in.
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
    // What throws here (a wrong key) reaches Express's error handler: nothing is processed either.
    const decision = await consent.canProcess({ principalId, purpose });
    if (decision.allowed) next();
    else response.status(403).json({ error: 'consent-needed', purpose, reason: decision.reason });
  };
}

if (process.argv[1]?.endsWith('express.mjs')) {
  const consent = ConsentClient.fromEnv();
  const app = express();
  // Your session says who it is; this header stands for it.
  const principalOf = (request) => request.get('x-user');
  app.get('/offers', requireConsent(consent, 'newsletter', principalOf), (_request, response) => {
    response.json({ offers: ['for you'] });
  });
  const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}/offers`);
  });
}
