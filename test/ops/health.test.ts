import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { expectError, INGEST, REQUEST_ID } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const gpd = started(() => startGpd());

it('GET /healthz is alive and says its version, and GET /readyz is ready', async () => {
  const health = await ask(gpd.url, '/healthz');
  expect(health.status).toBe(200);
  expect(health.json()).toEqual({ status: 'ok', version });
  expect(health.headers['cache-control']).toBe('no-store');
  const ready = await ask(gpd.url, '/readyz');
  expect(ready.status).toBe(200);
  const housekeeping = { completeAt: null, retentionAt: null };
  expect(ready.json()).toEqual({ status: 'ready', notReady: [], degraded: [], housekeeping });
});

it('GET / says what this is, as JSON and as a page, and neither its tenants nor its version', async () => {
  const reply = await ask(gpd.url, '/');
  expect(reply.status).toBe(200);
  expect(reply.json()).toMatchObject({ service: 'gpd', reference: '/docs', openapi: '/openapi.json' });
  const page = await ask(gpd.url, '/', { headers: { accept: 'text/html' } });
  expect(page.headers['content-type']).toContain('text/html');
  expect(page.text).toContain('href="/my-data"');
  for (const body of [reply.text, page.text]) expect(body).not.toMatch(/acme|\d\.\d\.\d/);
});

describe('what is not there', () => {
  it.each([
    '/nothing',
    '/_fp/i',
    '/_fp/i/v2',
    `${INGEST}/`,
    `${INGEST}/x`,
    '/v1',
    '//_fp/i/v1',
    '/%2e%2e/healthz',
  ])('404 for GET and POST %s', async (path) => {
    expectError(await ask(gpd.url, path), 'not-found');
    expectError(await ask(gpd.url, path, { method: 'POST', body: '{}' }), 'not-found');
  });

  it.each(['/HEALTHZ', '/Console', '/ME', '/PRIVACY/dsar', '/_FP/pubkey?kid=acme'])(
    'a path is compared by case, as a proxy before it does: %s',
    async (path) => void expectError(await ask(gpd.url, path), 'not-found'),
  );

  it.each(['/%', '/%zz', '/%ff', '/assets/%zz'])('%s is a caller error', async (path) => {
    const reply = await ask(gpd.url, path);
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(reply.status).toBeLessThan(500);
    expect(reply.json()).toHaveProperty('error');
    expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  });
});

describe('another method', () => {
  it.each(['/_fp/pubkey?kid=acme', '/v1/agent.js', '/v1/embed.js', '/openapi.json'])(
    'of what is open to every origin, %s, the refusal is open as well',
    async (path) => {
      const reply = await ask(gpd.url, path, { method: 'OPTIONS' });
      expectError(reply, 'method-not-allowed');
      expect(reply.headers).toMatchObject({
        'access-control-allow-origin': '*',
        'cross-origin-resource-policy': 'cross-origin',
      });
    },
  );

  it('HEAD of the ingest route is 405 without a body', async () => {
    const reply = await ask(gpd.url, INGEST, { method: 'HEAD' });
    expect([reply.status, reply.text]).toEqual([405, '']);
    expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  });
});

it('every answer has a request id of its own and gives nothing away about the server', async () => {
  const paths = [
    '/healthz',
    '/readyz',
    '/nothing',
    '/_fp/pubkey',
    '/_fp/pubkey?kid=acme',
    '/v1/decisions/x',
    INGEST,
  ];
  const headers = { 'x-request-id': 'req_mine' };
  const replies = await Promise.all(paths.map((path) => ask(gpd.url, path, { headers })));
  const ids = replies.map((reply) => String(reply.headers['x-request-id']));
  for (const id of ids) expect(id).toMatch(REQUEST_ID);
  expect(new Set(ids).size).toBe(ids.length);
  for (const reply of replies) {
    expect(reply.headers).not.toHaveProperty('x-powered-by');
    expect(reply.headers).not.toHaveProperty('server');
    expect(reply.headers['x-content-type-options']).toBe('nosniff');
  }
});
