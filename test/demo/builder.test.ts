import { createPublicKey, verify } from 'node:crypto';
import { expect, it } from 'vitest';
import { createAgent, joinSignatures, signedHeaders } from '../agents/support/agent.ts';
import { type Ask, ask } from '../support/http.ts';
import { started } from '../support/started.ts';
import matrix from '../vectors/wba-matrix.json' with { type: 'json' };
import { startDemoApp } from './support/demo-app.ts';

/** The page for builders of agents. */

const demo = started(() => startDemoApp());

const plain = (html: string): string =>
  html
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
const textOf = (html: string): string => plain(html.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' '));
const basesOf = (html: string): string[] =>
  [...html.matchAll(/<pre data-testid="base"[^>]*>([^<]*)<\/pre>/g)].map(([, base = '']) => plain(base));

const explain = (url: string, fields: Readonly<Record<string, string>>) =>
  ask(url, '/demo/agents', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
  });

const requestText = (method: string, url: string, headers: Ask['headers']): string =>
  [
    `${method} ${url}`,
    ...Object.entries(headers ?? {}).flatMap(([name, value]) =>
      [value].flat().map((one) => `${name}: ${one}`),
    ),
  ].join('\n');

/** Signed now, for a host of the demo's page. */
function signedNow(agent: ReturnType<typeof createAgent>, label: string, over: Record<string, string> = {}) {
  const now = Math.floor(Date.now() / 1000);
  const params = { created: String(now), expires: String(now + 60), ...over };
  return signedHeaders(agent, { label, params, host: 'shop.example', method: 'GET', target: '/' });
}

it('a builder sees what holds and what does not, in words, for each signature', async () => {
  expect((await ask(demo.app.url, '/demo')).text).toContain('href="/demo/agents"');
  const page = await ask(demo.app.url, '/demo/agents');
  expect(page.status).toBe(200);
  const [request = '', keys = ''] = [...page.text.matchAll(/<textarea[^>]*>([^<]*)<\/textarea>/g)].map(
    ([, text = '']) => plain(text),
  );
  expect(textOf((await explain(demo.app.url, { request, keys })).text)).toContain(
    'verified It verifies. The agent is https://agent.example.',
  );
  const changed = await explain(demo.app.url, {
    request: request.replace('shop.example', 'other.example'),
    keys,
  });
  expect(textOf(changed.text)).toContain('The bytes do not verify');
  expect(changed.text).toContain('signature-mismatch');
  expect(basesOf(changed.text)[0]).toContain('"@authority": other.example\n');
  expect(textOf((await explain(demo.app.url, { request, keys: '' })).text)).toContain(
    'The key set is not known',
  );

  const agent = createAgent();
  const both = joinSignatures(signedNow(agent, 'sig1'), signedNow(agent, 'sig2', { expires: '1' }));
  const keySet = JSON.stringify({ keys: [agent.jwk] });
  const two = await explain(demo.app.url, {
    request: requestText('GET', 'https://shop.example/', both),
    keys: keySet,
  });
  expect(textOf(two.text)).toMatch(
    /Signature sig1 verified It verifies.*Signature sig2 invalid `expires` is before/,
  );
  expect(two.text).toContain(agent.thumbprint);

  const unsigned = await explain(demo.app.url, { request: 'GET https://shop.example/', keys: '' });
  expect(textOf(unsigned.text)).toContain(
    'Not signed. The request has no signature with the tag web-bot-auth',
  );
  const malformed = request.replace('Signature-Input: ', 'Signature-Input: =');
  expect(textOf((await explain(demo.app.url, { request: malformed, keys })).text)).toMatch(
    /Cannot be judged\. `Signature-Input` is not a dictionary/,
  );
  const badForm = await explain(demo.app.url, { request: 'shop.example', keys: '{}' });
  expect(badForm.status).toBe(400);
  expect(textOf(badForm.text)).toMatch(/Write METHOD and URL in the first line.*gpd can use no key of this/);
  expect((await explain(demo.app.url, {})).status).toBe(400);
  const twice = await ask(demo.app.url, '/demo/agents', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'request=a&request=b&keys=a&keys=b',
  });
  expect(twice.status).toBe(400);
});

it('the vectors of the drafts are signed over the signature base that it shows', async () => {
  const key = createPublicKey({ key: matrix.common.public_jwk, format: 'jwk' });
  const good = matrix.cases.filter(
    ({ name, expect: answer }) => answer === 'accept' && name !== 'ok-query-param',
  );
  expect(good.length).toBeGreaterThan(10);
  for (const testCase of good) {
    const one = { ...matrix.common, ...testCase } as typeof matrix.common & Record<string, unknown>;
    const headers = {
      ...{ 'signature-agent': one.agent, 'signature-input': one.input, signature: String(one['signature']) },
      ...(one['headers'] as Ask['headers']),
    };
    const { text } = await explain(demo.app.url, {
      request: requestText(one.method, one.url, headers),
      keys: '',
    });
    const bytes = [...String(one['signature']).matchAll(/=:([^:]*):/g)].map(([, base64 = '']) =>
      Buffer.from(base64, 'base64'),
    );
    const holds = basesOf(text).some((base) =>
      bytes.some((byte) => verify(null, Buffer.from(base), key, byte)),
    );
    expect({ name: one['name'], holds }).toEqual({ name: one['name'], holds: true });
  }
});

it('a header may have the name of a property of every object', async () => {
  for (const name of ['constructor', '__proto__']) {
    const answer = await explain(demo.app.url, {
      request: `GET https://shop.example/\n${name}: 1`,
      keys: '',
    });
    expect([answer.status, textOf(answer.text)]).toEqual([200, expect.stringContaining('no signature')]);
  }
});

it('an agent that asks the demo is told about its own request', async () => {
  const agent = createAgent();
  const now = Math.floor(Date.now() / 1000);
  const target = `/demo/agents/echo?key=${agent.jwk.x}`;
  const options = { scheme: 'http', host: `127.0.0.1:${demo.app.port}`, method: 'PUT', target } as const;
  const components = ['"@method"', '"@target-uri"', '"signature-agent";key="sig1"'];
  const params = { created: String(now), expires: String(now + 60) };
  const headers = signedHeaders(agent, { ...options, components, params });
  const put = await ask(`http://${options.host}`, target, { method: 'PUT', headers });
  expect(put.text).toMatch(/^sig1: verified\. It verifies\. The agent is https:\/\/agent\.example\./);
  expect(put.text).toContain(`"@target-uri": http://${options.host}${target}\n`);
  const get = await ask(`http://${options.host}`, target, { headers });
  expect(get.text).toContain('(signature-mismatch)');
  expect(get.headers['content-type']).toMatch(/^text\/plain/);
});
