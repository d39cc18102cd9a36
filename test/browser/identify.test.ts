import type { Page } from 'playwright-core';
import { beforeEach, expect, it } from 'vitest';
import { MINUTE } from '../../src/lib/clock.ts';
import { plaintextSchema, sealedBundleSchema } from '../../src/schema/bundle.ts';
import { readSignals } from '../../src/schema/signals.ts';
import { started } from '../support/started.ts';
import { createIngestAnswer, createSealKey, GRANTED, pubKeyBody, type SealKey } from './support/answers.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';
import { type Answer, type Exchange, startSite } from './support/site.ts';

const KID = 'shop';
const CONSENT = { ...GRANTED, proof: { seq: 41, hash: 'ab'.repeat(32) }, principalId: 'u-1' };

const isPost = ({ method }: Exchange): boolean => method === 'POST';
const isKey = ({ path }: Exchange): boolean => path.includes('/_fp/pubkey');

function openPlaintext(key: SealKey, exchange: Exchange) {
  const opened = key.open(sealedBundleSchema.parse(JSON.parse(exchange.body)));
  return opened === null ? null : plaintextSchema.parse(JSON.parse(opened.toString('utf8')));
}

describeInChromium('browser/identify', () => {
  const { openTab } = useTabs();
  const site = started(() => startSite({ gpd: (exchange) => gpd(exchange) }));
  let page: Page;
  let gpd: (exchange: Exchange) => Answer | undefined;

  beforeEach(async () => {
    page = await openTab(site.origin);
    site.exchanges.length = 0;
  });

  const identify = (options: object = {}): Promise<unknown> =>
    page.evaluate(
      `import('/v1/agent.js').then((agent) =>
        agent.identify(${JSON.stringify({ kid: KID, consent: CONSENT, ...options })}))`,
    );

  const keyAnswer = (key: SealKey, headers = {}): Answer => ({
    status: 200,
    body: pubKeyBody(KID, key),
    headers: { 'cache-control': 'public, max-age=300', ...headers },
  });

  /** gpd answers every bundle with this. @returns its key */
  function answering(answer: Answer, headers = {}): SealKey {
    const key = createSealKey();
    gpd = (exchange) => (isPost(exchange) ? answer : keyAnswer(key, headers));
    return key;
  }
  const ok = (): SealKey => answering(createIngestAnswer('ok'));

  it('says in the console, at debug level, what it looks for there', async () => {
    ok();
    const lines: string[] = [];
    page.on('console', (message) => void (message.type() === 'debug' && lines.push(message.text())));
    await identify();
    await expect.poll(() => lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toContain('gpd looks whether a developer protocol is listening');
  });

  it('sends one sealed bundle with the plaintext of the contract', async () => {
    const key = ok();
    const before = Date.now();
    expect(await identify()).toMatchObject({ sent: true, status: 200, response: { reason: 'ok' } });
    const posts = site.exchanges.filter(isPost);
    expect(posts).toHaveLength(1);
    expect(posts[0]).toMatchObject({ path: '/_fp/i/v1', headers: { 'content-type': 'application/json' } });
    const plaintext = openPlaintext(key, posts[0]!);
    expect(Object.keys(plaintext!).sort()).toEqual(['clientTs', 'consent', 'nonce', 'signals', 'v']);
    expect(plaintext!.consent).toEqual(CONSENT);
    expect(plaintext!.nonce).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(plaintext!.clientTs).toBeGreaterThanOrEqual(before);
    expect(readSignals(plaintext!.signals)).toMatchObject({ malformed: false });
    expect(posts[0]!.body.length).toBeLessThan(32_768);
  });

  it('asks below the path that it was served from', async () => {
    ok();
    const options = JSON.stringify({ kid: KID, consent: CONSENT });
    const result = await page.evaluate(
      `import('/gpd/v1/agent.js').then((agent) => agent.identify(${options}))`,
    );
    expect(result).toMatchObject({ sent: true, status: 200 });
    const paths = site.exchanges.map(({ path }) => path);
    expect(paths.filter((path) => !path.startsWith('/gpd/'))).toEqual([]);
    expect(paths).toContain('/gpd/_fp/i/v1');
  });

  it('uses the key it has for a second bundle, with another nonce and ephemeral key', async () => {
    const key = ok();
    await identify();
    await identify();
    const [first, second] = site.exchanges.filter(isPost);
    expect(site.exchanges.filter(isKey)).toHaveLength(1);
    expect(openPlaintext(key, first!)!.nonce).not.toBe(openPlaintext(key, second!)!.nonce);
    expect(JSON.parse(first!.body).epk).not.toBe(JSON.parse(second!.body).epk);
  });

  it('asks for the key once more when the server cannot open the bundle, and seals anew', async () => {
    const [old, current] = [createSealKey(), createSealKey()];
    let published = old;
    const nonces: string[] = [];
    gpd = (exchange) => {
      if (isKey(exchange)) return keyAnswer(published);
      nonces.push((openPlaintext(old, exchange) ?? openPlaintext(current, exchange))!.nonce);
      published = current;
      return createIngestAnswer(openPlaintext(current, exchange) ? 'ok' : 'decrypt-failed');
    };
    expect(await identify()).toMatchObject({ sent: true, status: 200, response: { reason: 'ok' } });
    expect(new Set(nonces).size).toBe(2);
    expect(site.exchanges.filter((exchange) => isPost(exchange) || isKey(exchange)).map(isPost)).toEqual([
      false,
      true,
      false,
      true,
    ]);
    // Past every cache on the way, although the first answer was good for five minutes.
    expect(site.exchanges.filter(isKey)[1]!.headers['cache-control']).toBe('no-cache');
  });

  it('gives up after the second decrypt-failed and tells it', async () => {
    answering(createIngestAnswer('decrypt-failed'));
    expect(await identify()).toMatchObject({
      sent: true,
      status: 400,
      response: { reason: 'decrypt-failed' },
    });
    expect(site.exchanges.filter(isPost)).toHaveLength(2);
    expect(site.exchanges.filter(isKey)).toHaveLength(2);
  });

  /** A server whose clock is `ms` after this device's, and that judges a bundle by it. */
  const serverAhead = (ms: number, key: SealKey) => {
    const now = (): number => Date.now() + ms;
    return (exchange: Exchange): Answer => {
      const date = new Date(now()).toUTCString();
      if (isKey(exchange)) return keyAnswer(key, { date });
      const { clientTs } = openPlaintext(key, exchange)!;
      const answer = createIngestAnswer(Math.abs(now() - clientTs) <= 300_000 ? 'ok' : 'stale');
      return { ...answer, headers: { date } };
    };
  };

  it.each([600_000, -600_000])(
    'clock off by %d ms: seals once more, by the time of a fresh key',
    async (ms) => {
      const key = createSealKey();
      gpd = serverAhead(ms, key);
      const result = (await identify()) as { clockAheadMs: number };
      expect(result).toMatchObject({ sent: true, status: 200, response: { reason: 'ok' } });
      expect(Math.abs(result.clockAheadMs + ms)).toBeLessThan(MINUTE);
      const posts = site.exchanges.filter(isPost);
      expect(posts).toHaveLength(2);
      const nonces = posts.map((post) => openPlaintext(key, post)!.nonce);
      expect(new Set(nonces).size).toBe(2);
      expect(site.exchanges.filter(isKey)[1]!.headers['cache-control']).toBe('no-cache');
      // The page knows by now, until the clock is put right.
      expect(await identify()).toMatchObject({ response: { reason: 'ok' } });
      expect(site.exchanges.filter(isPost)).toHaveLength(3);
      gpd = serverAhead(0, key);
      const right = await identify();
      expect(right).toMatchObject({ response: { reason: 'ok' } });
      expect(right).not.toHaveProperty('clockAheadMs');
    },
  );

  it('a key from a cache on the way is as old as it says', async () => {
    const key = createSealKey();
    const answer = serverAhead(600_000, key);
    gpd = (exchange) => {
      const date = new Date(Date.now() + 600_000 - 290_000).toUTCString();
      return isKey(exchange) ? keyAnswer(key, { date, age: '290' }) : answer(exchange);
    };
    const result = (await identify()) as { clockAheadMs: number };
    expect(result).toMatchObject({ response: { reason: 'ok' } });
    expect(Math.abs(result.clockAheadMs + 600_000)).toBeLessThan(MINUTE);
  });

  it('a clock off and a key that was rotated cost one more try, not two', async () => {
    const [old, current] = [createSealKey(), createSealKey()];
    let answer = serverAhead(600_000, old);
    gpd = (exchange) => {
      if (isKey(exchange)) return answer(exchange);
      const rotated = openPlaintext(old, exchange) !== null;
      if (rotated) answer = serverAhead(600_000, current);
      return rotated ? createIngestAnswer('decrypt-failed') : answer(exchange);
    };
    expect(await identify()).toMatchObject({ response: { reason: 'ok' } });
    expect(site.exchanges.filter(isPost)).toHaveLength(2);
  });

  it('stale by a clock that agrees: asked once more, and not sent again', async () => {
    const answer = createIngestAnswer('stale');
    answering(answer);
    expect(await identify()).toEqual({ sent: true, status: 400, response: answer.body });
    expect(site.exchanges.filter(isPost)).toHaveLength(1);
    expect(site.exchanges.filter(isKey)).toHaveLength(2);
  });

  it('stale again after the correction is told, with how far the clock is off', async () => {
    answering(createIngestAnswer('stale'), { date: new Date(Date.now() - 600_000).toUTCString() });
    expect(await identify()).toMatchObject({ status: 400, clockAheadMs: expect.any(Number) });
    expect(site.exchanges.filter(isPost)).toHaveLength(2);
  });

  it.each(['consent-missing', 'replay', 'unknown'] as const)('hands on %s as it is', async (reason) => {
    const answer = createIngestAnswer(reason);
    answering(answer);
    expect(await identify()).toEqual({ sent: true, status: answer.status, response: answer.body });
    expect(site.exchanges.filter(isPost)).toHaveLength(1);
  });

  it('tells a refusal before the core from a verdict', async () => {
    const body = { error: 'rate-limited', reason: 'rate-limited' };
    answering({ status: 429, body, headers: { 'retry-after': '7' } });
    expect(await identify()).toMatchObject({
      sent: false,
      reason: 'unavailable',
      cause: 'refused',
      status: 429,
      error: 'rate-limited',
      retryAfterSeconds: 7,
    });
  });

  it.each([
    ['no such kid', { error: 'unknown-kid' }, 404],
    ['another kid', pubKeyBody('other', createSealKey())],
    ['no point', { ...pubKeyBody(KID, createSealKey()), publicKey: 'AAAA' }],
    ['another algorithm', { ...pubKeyBody(KID, createSealKey()), alg: 'x' }],
    ['no JSON object', 1],
  ])('sends nothing for a key answer with %s', async (_what, body, status = 200) => {
    gpd = () => ({ status, body });
    const error = status === 404 ? 'unknown-kid' : null;
    expect(await identify()).toMatchObject({ sent: false, cause: 'key', status, error });
    expect(site.exchanges.filter(isPost)).toEqual([]);
  });

  it('rejects a point that is not on the curve without throwing', async () => {
    const publicKey = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 7)]).toString('base64');
    gpd = () => ({ status: 200, body: { ...pubKeyBody(KID, createSealKey()), publicKey } });
    expect(await identify()).toMatchObject({ sent: false, reason: 'unavailable', cause: 'internal' });
  });

  it.each([undefined, 'passkey'])('an invalid address is an answer, with attest %s', async (attest) => {
    const options = { endpoint: 'http://[', ...(attest && { attest }) };
    expect(await identify(options)).toMatchObject({ sent: false, reason: 'unavailable', cause: 'internal' });
  });

  it('follows no redirect with the bundle', async () => {
    answering({ status: 307, body: {}, headers: { location: '/elsewhere' } });
    expect(await identify()).toMatchObject({ sent: false, cause: 'network' });
    expect(site.exchanges.some(({ path }) => path === '/elsewhere')).toBe(false);
  });

  it('says that nobody is there, and that it waited long enough', async () => {
    expect(await identify({ endpoint: 'http://127.0.0.1:9' })).toMatchObject({
      sent: false,
      cause: 'network',
    });
    expect(await identify({ timeoutMs: 0 })).toMatchObject({ sent: false, cause: 'timeout' });
  });

  it('works without a worker and below a base path', async () => {
    ok();
    await identify({ endpoint: '/_fp/base/', workerUrl: null });
    const [post] = site.exchanges.filter(isPost);
    expect(post!.path).toBe('/_fp/base/_fp/i/v1');
    expect(site.exchanges.some(({ path }) => path.includes('worker'))).toBe(false);
  });

  it.each([
    ['named by none', { workerUrl: null }, 'worker'],
    ['that is no script', { workerUrl: '/nothing.js' }, 'worker'],
    ['of another origin', { workerUrl: 'http://localhost:9/agent-worker.js' }, 'worker'],
    ['that is there', { workerUrl: '/v1/agent-worker.js' }, undefined],
  ])('tells what is missing: a worker file %s', async (_what, options, incomplete) => {
    ok();
    const results = [
      await identify(options),
      await page.evaluate("import('/v1/agent.js').then((agent) => agent.update())"),
    ];
    for (const result of results) {
      expect(result).toMatchObject({ sent: true, response: { reason: 'ok' } });
      expect((result as { incomplete?: string }).incomplete).toBe(incomplete);
    }
  });
});
