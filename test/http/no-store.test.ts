import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALL_ROUTES } from '../../src/schema/routes.ts';
import { type Api, bearer, startApi } from '../consent/app/support/api.ts';
import { ORIGIN } from '../support/constants.ts';
import { ask, JSON_TYPE } from '../support/http.ts';

/** Nothing between a caller and gpd may keep an answer of the API: a withdrawal is in force at the next check. */

/** Files of the build, and a public key: they are the same for everyone. */
const FILES = /^\/v1\/(?:agent(?!s)|embed|my-data\.js|consent\/state-keys$)[\w.-]*(?:\/.*)?$/;
/** A page's server keeps the markup of the banner for a minute: it is about nobody. */
const MARKUP = '/v1/consent/banner.html';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** A method that the path has not is 405 whatever else is sent. */
function hasMethod(path: string, name: string): boolean {
  const method = name === 'HEAD' ? 'get' : name.toLowerCase();
  return method === 'options' || ALL_ROUTES.some((route) => route.path === path && route.method === method);
}

const paths = [...new Set(ALL_ROUTES.map(({ path }) => path).filter((path) => path.startsWith('/v1/')))];
const isFile = (path: string): boolean => FILES.test(path);

let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

/** Headers and bodies that lead to an answer of each kind: no key, a wrong one, a scope, a wrong body, a body, a preflight. */
const calls = (): readonly { headers: Record<string, string>; body?: string }[] => [
  { headers: {} },
  { headers: bearer('gpd_sk_nobody') },
  { headers: bearer(api.keys.publishable) },
  ...[api.keys.secret, api.keys.operator].flatMap((key) => [
    { headers: { ...bearer(key), ...JSON_TYPE }, body: '{' },
    { headers: { ...bearer(key), 'content-type': 'text/plain' }, body: '{}' },
    {
      headers: { ...bearer(key), ...JSON_TYPE },
      body: '{"principalId":"p","purpose":"device-identification"}',
    },
    { headers: { ...bearer(key), ...JSON_TYPE }, body: JSON.stringify('x'.repeat(40_000)) },
  ]),
  { headers: { origin: ORIGIN, 'access-control-request-method': 'POST' } },
];

describe('Cache-Control', () => {
  it.each(paths.filter((path) => !isFile(path)))('%s: no-store, whatever is asked', async (path) => {
    const url = path.replace('{seq}', '1').replace(/\{\w+\}/g, '0');
    const storable: string[] = [];
    for (const method of METHODS)
      for (const { headers, body } of calls().slice(0, hasMethod(path, method) ? undefined : 1)) {
        const hasBody = body !== undefined && !['GET', 'HEAD', 'OPTIONS'].includes(method);
        const reply = await ask(api.gpd.url, url, { method, headers, ...(hasBody && { body }) });
        const isMarkup = path === MARKUP && reply.status === 200;
        const caching = isMarkup ? 'private, max-age=60' : 'no-store';
        if (reply.headers['cache-control'] !== caching) storable.push(`${method} ${reply.status}`);
      }
    expect(storable).toEqual([]);
  });

  it('of a path below /v1 that is none, or none that can be read: no-store, and JSON for a browser too', async () => {
    for (const path of [
      '/v1',
      '/v1/',
      '/v1/nothing',
      '/v1/consent/nothing',
      '/v1/%zz',
      '/V1/consent/can-process',
    ])
      for (const accept of ['*/*', 'text/html']) {
        const reply = await ask(api.gpd.url, path, { headers: { accept } });
        expect([path, reply.status >= 400, reply.headers['cache-control']]).toEqual([path, true, 'no-store']);
        expect(reply.headers['content-type']).toMatch(/^application\/json/);
      }
  });

  it('of an answer to a request that no parser reads: no-store', async () => {
    const headers = { ...bearer(api.keys.secret), 'x-much': 'x'.repeat(70_000) };
    const reply = await ask(api.gpd.url, '/v1/consent/can-process', { method: 'POST', headers });
    expect([reply.status, reply.headers['cache-control']]).toEqual([431, 'no-store']);
  });

  it('of files that are the same for everyone: they may be kept', async () => {
    expect(paths.filter(isFile)).toHaveLength(12);
    const refusal = await ask(api.gpd.url, '/v1/embed/0/embed.js');
    expect([refusal.status, refusal.headers['cache-control']]).toEqual([404, 'no-store']);
  });
});
