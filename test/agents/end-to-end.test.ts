import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { IngestResponse } from '../../src/schema/responses.ts';
import { addApiKey } from '../support/api-key.ts';
import { tempDir } from '../support/command.ts';
import { expectCore, post, SEEN_WITHIN } from '../support/expect.ts';
import { type Ask, ask } from '../support/http.ts';
import { desktopChrome, headlessChrome } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import {
  AGENT_ORIGIN,
  type Agent,
  createAgent,
  quoted,
  rfcTestAgent,
  type SignOptions,
  signedHeaders,
} from './support/agent.ts';

/** A signed request through the built program: `gpd agents` on one side, the ingest route on the other. */

const gpd = started(() => startGpd({ settings: { GPD_AUTHORITIES: 'gpd.example' } }));

let files = 0;
function jwksFile(...keys: readonly unknown[]): string {
  files += 1;
  const file = join(tempDir('jwks'), `${files}.json`);
  writeFileSync(file, JSON.stringify({ keys }));
  return file;
}

function signed(agent: Agent, options: SignOptions = {}): Ask['headers'] {
  const now = Math.floor(Date.now() / 1000);
  const params = { created: String(now), expires: String(now + 60), ...options.params };
  const host = `127.0.0.1:${gpd.port}`;
  return signedHeaders(agent, { host, scheme: 'http', ...options, params });
}

async function ingest(headers: Ask['headers'], signals = desktopChrome()): Promise<IngestResponse> {
  const bundle = createBundle(gpd.targets[0]!, { signals });
  return expectCore(await post(gpd.url, bundle, headers), 'ok');
}

const pin = (file: string, url = AGENT_ORIGIN): Promise<Record<string, unknown>> =>
  gpd.json(['agents', 'add', url, '--jwks', file]);

describe('gpd agents', () => {
  it('adds an agent with pinned keys and lists it', async () => {
    const agent = createAgent('https://listed.example');
    const added = await pin(jwksFile(agent.jwk), 'https://listed.example');
    expect(added).toMatchObject({
      agentId: 'https://listed.example',
      url: agent.directory,
      source: 'pinned',
      keys: [agent.thumbprint],
      failure: null,
    });
    const list = await gpd.json<unknown[]>(['agents', 'list']);
    expect(list).toContainEqual(added);
  });

  it('says of keys with a validity in milliseconds that they are, when added and in the list', async () => {
    const { jwk } = createAgent();
    const url = 'https://milliseconds.example';
    const ran = await gpd.cli([
      'agents',
      'add',
      url,
      '--jwks',
      jwksFile({ ...jwk, exp: Date.now() + 60_000 }),
    ]);
    expect(ran).toMatchObject({ code: 0, stderr: expect.stringMatching(/exp is in milliseconds/) as string });
    const { stdout } = await gpd.cli(['agents', 'list']);
    expect(stdout).toMatch(/milliseconds\.example .* in milliseconds/);
  });

  it.each([
    ["the RFC's printed key", () => [rfcTestAgent().jwk]],
    ['too many keys', () => Array.from({ length: 33 }, () => createAgent().jwk)],
  ])('refuses %s, exit 2', async (_name, keys) => {
    const file = jwksFile(...keys());
    const ran = await gpd.cli(['agents', 'add', 'https://refused.example', '--jwks', file]);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(/key|JWKS/);
    const list = await gpd.json<{ agentId: string }[]>(['agents', 'list']);
    expect(list.map(({ agentId }) => agentId)).not.toContain('https://refused.example');
  });

  it('refuses an address without https, exit 2', async () => {
    const ran = await gpd.cli([
      'agents',
      'add',
      'http://agent.example',
      '--jwks',
      jwksFile(createAgent().jwk),
    ]);
    expect(ran.code).toBe(2);
  });

  it('lists what cannot be fetched, exit 5, and never asks a private address', async () => {
    const ran = await gpd.cli(['agents', 'add', 'https://127.0.0.1:1', '--json']);
    expect(ran.code).toBe(5);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      source: 'listed',
      keys: [],
      failure: 'the address is not public',
    });
    expect((await gpd.cli(['agents', 'refresh', 'https://127.0.0.1:1'])).code).toBe(5);
    expect((await gpd.cli(['agents', 'refresh', 'https://nobody.example'])).code).toBe(3);
  });

  it('keeps the keys it has when a later fetch of the same directory fails', async () => {
    const agent = createAgent('https://127.0.0.1:2');
    await pin(jwksFile(agent.jwk), 'https://127.0.0.1:2');
    const ran = await gpd.cli(['agents', 'add', 'https://127.0.0.1:2', '--json']);
    expect(ran.code).toBe(5);
    expect(JSON.parse(ran.stdout)).toMatchObject({
      keys: [agent.thumbprint],
      failure: 'the address is not public',
    });
  });
});

describe('a signed ingest', () => {
  const agent = createAgent();
  beforeAll(async () => {
    await pin(jwksFile(agent.jwk));
    await vi.waitFor(
      async () => expect((await ingest(signed(agent))).class).toBe('declared_agent'),
      SEEN_WITHIN,
    );
  });

  it('is a declared agent, named by the origin of its directory, and still scored', async () => {
    const body = await ingest(signed(agent));
    expect(body).toMatchObject({ class: 'declared_agent', declaredAgentId: AGENT_ORIGIN, suspectScore: 0 });
    expect(body.smartSignals).toEqual({ bot: false, incognito: false, tampered: false, inconsistency: 0 });
    expect(body.visitorId).not.toBeNull();
  });

  it('is one in the absolute form of a request too, and by no other name that its target makes up', async () => {
    const bundle = createBundle(gpd.targets[0]!, { signals: desktopChrome() });
    const absolute = { ...signed(agent), 'content-type': 'application/json' };
    const request = { method: 'POST', headers: absolute, body: JSON.stringify(bundle) };
    const reply = await ask(gpd.url, `${gpd.url}/_fp/i/v1`, request);
    expect(reply.json()).toMatchObject({ class: 'declared_agent', declaredAgentId: AGENT_ORIGIN });
    for (const target of ['@other.example/_fp/i/v1', '//other.example/_fp/i/v1', 'https:/_fp/i/v1'])
      expect((await ask(gpd.url, target, request)).status).toBeGreaterThanOrEqual(400);
  });

  it('is a bot if and only if an A rule fired', async () => {
    const headless = await ingest(signed(agent), headlessChrome());
    expect(headless).toMatchObject({ class: 'declared_agent', smartSignals: { bot: true } });
    expect(headless.suspectScore).toBe(1);

    const tampering = desktopChrome();
    tampering.tells['patched'] = ['userAgent'];
    tampering.page['chromeObject'] = false;
    const tampered = await ingest(signed(agent), tampering);
    expect(tampered).toMatchObject({ class: 'declared_agent', smartSignals: { bot: false, tampered: true } });
    expect(tampered.suspectScore).toBeCloseTo(0.35);
  });

  it('is one by a further public name of ours, and by no other', async () => {
    expect(await ingest(signed(agent, { host: 'gpd.example' }))).toMatchObject({
      declaredAgentId: AGENT_ORIGIN,
    });
    expect(await ingest(signed(agent, { host: 'evil.example' }))).toMatchObject({
      class: 'human',
      declaredAgentId: null,
    });
  });

  it('that covers the digest of another body is nobody’s, and the decision says why', async () => {
    const read = { authorization: `Bearer ${await addApiKey(gpd, 'read-only')}` };
    async function found(over: string) {
      const bundle = JSON.stringify(createBundle(gpd.targets[0]!, { signals: desktopChrome() }));
      const digest = `sha-256=:${createHash('sha256').update(bundle).update(over).digest('base64')}:`;
      const components = ['"@authority"', '"content-digest"', '"signature-agent";key="sig1"'];
      const headers = signed(agent, { components, headers: { 'content-digest': digest } });
      const { requestId } = expectCore(await post(gpd.url, bundle, headers), 'ok');
      return (await ask(gpd.url, `/v1/decisions/${requestId}`, { headers: read })).json();
    }
    expect(await found('')).toMatchObject({
      declaredAgentId: AGENT_ORIGIN,
      signature: { status: 'verified', reason: null },
    });
    expect(await found('more')).toMatchObject({
      declaredAgentId: null,
      signature: { status: 'invalid', reason: 'digest-mismatch' },
    });
  });

  it('is not verified a second time with the same nonce', async () => {
    const headers = signed(agent, { params: { nonce: quoted(`n-${Date.now()}`) } });
    expect(await ingest(headers)).toMatchObject({ class: 'declared_agent', declaredAgentId: AGENT_ORIGIN });
    expect(await ingest(headers)).toMatchObject({ class: 'human', declaredAgentId: null });
  });
});

describe('an ingest that is not signed', () => {
  const forms: readonly (readonly [string, () => Ask['headers']])[] = [
    ['has no declared agent', () => ({})],
    ["has none by the RFC's printed key", () => signed(rfcTestAgent())],
    ['has none by a stranger', () => signed(createAgent())],
    ['has none by garbage', () => ({ signature: 'x', 'signature-input': '(((', 'signature-agent': '"' })],
  ];
  it.each(forms)('%s, and is judged as ever', async (_name, headers) => {
    expect(await ingest(headers())).toMatchObject({ class: 'human', declaredAgentId: null });
  });

  it('with 64 KB of signature headers is refused before the core, and not with a 500', async () => {
    const reply = await post(gpd.url, createBundle(gpd.targets[0]!), { signature: 'a'.repeat(65_536) });
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(reply.status).toBeLessThan(500);
    expect(await ingest({})).toMatchObject({ class: 'human' });
  });
});
