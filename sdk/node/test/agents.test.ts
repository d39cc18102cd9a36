import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import express from 'express';
import { expect, test } from 'vitest';
import { type AgentAnswer, agentMiddleware } from '../src/agents.ts';
import { ConsentClient } from '../src/client.ts';
import { FakeConsent } from '../src/fake.ts';

const SIGNED = { signature: 'sig1=:AAAA:', 'signature-input': 'sig1=("x-two" "cookie");tag="t"' };

/** A client whose calls are answered at once, and the bodies that it sent. */
function recorded() {
  const bodies: unknown[] = [];
  const answer = {
    status: 'none',
    agent: null,
    keyid: null,
    tag: null,
    intent: null,
    expires: null,
    reason: null,
  };
  const client = new ConsentClient({
    url: 'http://gpd.example',
    key: 'gpd_sk_x',
    fetch: async (_url, init) => {
      bodies.push(JSON.parse(init?.body as string));
      return Response.json(answer);
    },
  });
  return { client, bodies };
}

test.each([
  [undefined, 'https://shop.example/a%20b?c=%7E'],
  ['https://www.shop.example/', 'https://www.shop.example/a%20b?c=%7E'],
])('describes a request of Fetch: %s', async (origin, url) => {
  const { client, bodies } = recorded();
  const request = new Request('https://shop.example/a%20b?c=%7E', { method: 'PUT', headers: SIGNED });
  await client.agent(request, { origin });
  const [signature, input] = Object.values(SIGNED);
  expect(bodies).toEqual([
    { method: 'PUT', url, headers: { signature: [signature], 'signature-input': [input] } },
  ]);
});

test.each<[string, string | undefined, string]>([
  ['the host that the client named', undefined, 'http://named.example/shop/a?b=c'],
  ['the address of the site', 'https://shop.example', 'https://shop.example/shop/a?b=c'],
])("a middleware of Express behind a prefix describes Node's request by %s", async (_name, origin, url) => {
  const { client, bodies } = recorded();
  const app = express();
  app.use('/shop', agentMiddleware(client, { origin }), (_request, response) => response.send('in'));
  const server = createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const headers = { ...SIGNED, host: 'named.example', 'x-two': ['1', '2'], 'x-other': '3' };
  const [response] = await once(get({ port, path: '/shop/a?b=c', headers }), 'response');
  server.close();
  expect(await text(response)).toBe('in');
  expect(bodies).toMatchObject([{ method: 'GET', url, headers: { 'x-two': ['1, 2'] } }]);
  expect(bodies).not.toMatchObject([{ headers: { 'x-other': expect.anything() } }]);
});

test('a middleware refuses without the reason, and hands on what gpd cannot be asked', async () => {
  const fake = new FakeConsent();
  const seen: (AgentAnswer | undefined)[] = [];
  const app = express();
  app.use(agentMiddleware(fake, { allows: ({ status }) => status !== 'invalid' }));
  app.use((request: express.Request & { agent?: AgentAnswer }, response) => {
    seen.push(request.agent);
    response.end();
  });
  const server = createServer(app);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const ask = (): Promise<Response> => fetch(`http://127.0.0.1:${port}/`, { headers: SIGNED });
  fake.setAgent({ agent: 'https://agent.example' });
  await ask();
  fake.setUnavailable(true);
  await ask();
  fake.setUnavailable(false);
  fake.setAgent({ status: 'invalid', reason: 'expired' });
  const refused = await ask();
  server.close();
  expect(seen).toMatchObject([
    { status: 'verified', agent: 'https://agent.example', error: null },
    { status: 'unverified', agent: null, reason: 'unavailable', error: { kind: 'network' } },
  ]);
  expect([refused.status, await refused.text()]).toEqual([403, '{"error":"agent-refused"}']);
});

test.each([null, {}, { method: 'GET', url: '/' }])('refuses %j, which is no request', async (request) => {
  await expect(new FakeConsent().agent(request as never)).rejects.toMatchObject({ kind: 'invalid-request' });
});
