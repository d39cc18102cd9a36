import { promisify } from 'node:util';
import { type Router, urlencoded } from 'express';
import { z } from 'zod';
import { exactRouter } from '../http/express-app.ts';
import { requestFacts } from '../http/server.ts';
import { explainRequest, explanationText, parseRequest, readKeySet, signExample } from './builder-service.ts';

/** The page for builders of agents, and a URL that explains the request that it gets. */

const PAGE = '/demo/agents';
const ECHO = '/demo/agents/echo';

const formSchema = z.object({ request: z.string().catch(''), keys: z.string().catch('') });

export function builderRoutes(tags: readonly string[]): Router {
  const router = exactRouter();
  const readForm = promisify(urlencoded({ extended: false, limit: 65_536, inflate: false }));
  const render = { errors: {}, explanation: null, keySet: [], echo: ECHO };

  router.get(PAGE, (_request, response) => {
    response.set('cache-control', 'no-store');
    response.render('demo/builder', { ...render, ...signExample(Date.now()) });
  });

  router.post(PAGE, async (form, response) => {
    await readForm(form, response);
    const { request, keys } = formSchema.parse(form.body ?? {});
    const described = parseRequest(request);
    const keySet = keys.trim() === '' ? null : await readKeySet(keys);
    const errors = {
      ...(!described && { request: 'Write METHOD and URL in the first line, then one header in each line.' }),
      ...(!keySet &&
        keys.trim() !== '' && {
          keys: 'gpd can use no key of this: it takes public Ed25519 keys, and not that of RFC 9421.',
        }),
    };
    const isRight = Object.keys(errors).length === 0;
    const explanation =
      described && isRight ? await explainRequest(described, keySet, tags, Date.now()) : null;
    response.status(isRight ? 200 : 400).set('cache-control', 'no-store');
    response.render('demo/builder', { ...render, request, keys, errors, explanation, keySet: keySet ?? [] });
  });

  router.all(ECHO, async (request, response) => {
    const { method, originalUrl, headers, query } = request;
    const url = `${requestFacts(request).https ? 'https' : 'http'}://${headers.host ?? ''}${originalUrl}`;
    const fields = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    );
    const described = {
      method,
      url,
      headers: Object.fromEntries(fields) as Record<string, string | string[]>,
    };
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: query['key'] };
    const keys = query['key'] === undefined ? null : await readKeySet(JSON.stringify(jwk));
    const explanation = await explainRequest(described, keys, tags, Date.now());
    response.set('cache-control', 'no-store').type('text/plain').send(explanationText(explanation));
  });
  return router;
}
