import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { MAX_BODY_BYTES } from '../src/body.ts';
import { ConsentClient } from '../src/client.ts';
import type { ConsentError } from '../src/errors.ts';
import { VERSION } from '../src/version.ts';
import { signWebhook, verifyWebhook } from '../src/webhook.ts';

const KEY = `gpd_sk_${'k'.repeat(43)}`;
const CHECK = { principalId: 'someone@shop.example', purpose: 'newsletter' };
const GRANTED = { allowed: true, reason: 'granted', proof: { seq: 1, hash: 'ab'.repeat(32) } };

const clientOf = (answer: typeof fetch, options: object = {}): ConsentClient =>
  new ConsentClient({ url: 'http://127.0.0.1:1', key: KEY, fetch: answer, ...options });

const hangs: typeof fetch = (_url, init) =>
  new Promise((_resolve, reject) => {
    init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
  });

const kindOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error: ConsentError) => `${error.kind} ${error.code}`,
  );

/** A fetch as Next.js 14 wraps it: it stores each answer by address, method, headers and body, unless the cache mode forbids it. */
function storingFetch(origin: typeof fetch): typeof fetch {
  const stored = new Map<string, Promise<Response>>();
  return async (input, init) => {
    const request = new Request(input, init);
    if (request.cache === 'no-store' || request.cache === 'no-cache') return origin(input, init);
    const key = JSON.stringify([request.url, request.method, [...request.headers], await request.text()]);
    const answer = stored.get(key) ?? origin(input, init);
    stored.set(key, answer);
    return (await answer).clone();
  };
}

describe('the client', () => {
  test('shows neither its key nor its settings', () => {
    const client = clientOf(hangs);
    const shown = inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client);
    expect(shown).not.toContain(KEY);
  });

  test('denies on an answer that is larger than 4 MiB, told or not', async () => {
    const text = JSON.stringify({ ...GRANTED, padding: 'x'.repeat(MAX_BODY_BYTES) });
    const withLength = clientOf(
      async () => new Response(text, { headers: { 'content-length': `${text.length}` } }),
    );
    const withoutLength = clientOf(async () => new Response(new Blob([text]).stream()));
    await expect(withLength.canProcess(CHECK)).resolves.toMatchObject({
      allowed: false,
      error: { kind: 'response' },
    });
    await expect(withoutLength.canProcess(CHECK)).resolves.toMatchObject({
      allowed: false,
      error: { kind: 'response' },
    });
    const small = clientOf(async () => new Response(new Blob([JSON.stringify(GRANTED)]).stream()));
    await expect(small.isAllowed(CHECK)).resolves.toBe(true);
  });

  test('cancels what is running when it is closed', async () => {
    const client = clientOf(hangs);
    const running = kindOf(client.isAllowed(CHECK));
    await client.close();
    expect(await running).toBe('config closed');
  });

  test('is not asked at all under a signal that is aborted, and rejects with its reason', async () => {
    let calls = 0;
    const client = clientOf(async () => {
      calls += 1;
      return Response.json(GRANTED);
    });
    const reason = new Error('no longer wanted');
    await expect(client.isAllowed(CHECK, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(calls).toBe(0);
  });

  test('leaves no listener on a signal that lives long', async () => {
    const client = clientOf(async () => Response.json(GRANTED));
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    for (let i = 0; i < 20; i += 1) await client.isAllowed(CHECK, { signal });
    expect(listeners).toBe(0);
  });

  test('refuses a time of a call that is none', async () => {
    const client = clientOf(hangs);
    for (const timeoutMs of [0, 60_001, Number.NaN]) {
      expect(await kindOf(client.isAllowed(CHECK, { timeoutMs }))).toBe('config config');
    }
  });

  test('calls fetch without a receiver, which workerd would refuse as an illegal invocation', async () => {
    const client = clientOf(function strict(this: unknown): Promise<Response> {
      if (this !== undefined) throw new TypeError('Illegal invocation');
      return Promise.resolve(Response.json(GRANTED));
    });
    await expect(client.isAllowed(CHECK)).resolves.toBe(true);
  });

  test('asks again after a withdrawal, under a host that stores what fetch answers', async () => {
    let allowed = true;
    const server: typeof fetch = async () =>
      Response.json(allowed ? GRANTED : { ...GRANTED, allowed: false, reason: 'withdrawn' });
    const client = clientOf(storingFetch(server));
    expect(await client.isAllowed(CHECK)).toBe(true);
    expect(await client.canProcess(CHECK)).toMatchObject({ reason: 'granted' });
    allowed = false;
    expect(await client.isAllowed(CHECK)).toBe(false);
    expect(await client.canProcess(CHECK)).toMatchObject({ reason: 'withdrawn' });
  });

  test('forbids every host to store an answer, whichever method was called', async () => {
    const inits: RequestInit[] = [];
    const client = clientOf(async (_url, init) => {
      inits.push(init ?? {});
      return Response.json({});
    });
    const write = { principalId: 'u-1', purposes: ['newsletter'] };
    const calls: readonly (() => Promise<unknown>)[] = [
      () => client.isAllowed(CHECK),
      () => client.canProcess(CHECK),
      () => client.canProcessMany([CHECK]),
      () => client.grant(write),
      () => client.deny(write),
      () => client.withdraw(write),
      () => client.state('u-1'),
      () => client.history('u-1'),
      () => client.sessions.create('u-1'),
      () => client.receipt(1),
      () => client.proof(1),
      () => client.decision('req_1'),
      () => client.reportOutcome('req_1', 'fraud'),
      () => client.ping(),
    ];
    await Promise.allSettled(calls.map((call) => call()));
    expect(inits).toHaveLength(calls.length);
    for (const { cache, headers } of inits) {
      expect(cache).toBe('no-store');
      expect(new Headers(headers).get('cache-control')).toBe('no-store');
    }
  });

  test('shows each error to the hook, also one that became a denial, and is not disturbed by it', async () => {
    const seen: (readonly [string, string | null])[] = [];
    const onError = (error: ConsentError): void => {
      seen.push([error.kind, error.detail]);
      throw new Error('the logger fails');
    };
    const malformed = clientOf(async () => new Response('<html>'), { onError });
    await expect(malformed.isAllowed(CHECK)).resolves.toBe(false);
    const broken = clientOf(
      async () => {
        throw new TypeError(`fetch failed ${KEY}`, {
          cause: Object.assign(new Error(KEY), { code: 'ENOTFOUND' }),
        });
      },
      { onError, retries: 0 },
    );
    const { error } = await broken.canProcess(CHECK);
    expect(error).toMatchObject({ detail: 'dns', cause: { message: 'ENOTFOUND' } });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(KEY);
    expect(seen).toEqual([
      ['response', 'body'],
      ['network', 'dns'],
    ]);
  });

  test('sets no cache mode where the host has none: an older workerd would refuse the call', async () => {
    const mode = Object.getOwnPropertyDescriptor(Request.prototype, 'cache') as PropertyDescriptor;
    Reflect.deleteProperty(Request.prototype, 'cache');
    vi.resetModules();
    try {
      const { ConsentClient: Older } = await import('../src/client.ts');
      const older: typeof fetch = async (_url, init) => {
        if (init && 'cache' in init) throw new TypeError('unknown member: cache');
        return Response.json(GRANTED);
      };
      const client = new Older({ url: 'http://127.0.0.1:1', key: KEY, fetch: older });
      await expect(client.isAllowed(CHECK)).resolves.toBe(true);
    } finally {
      Object.defineProperty(Request.prototype, 'cache', mode);
      vi.resetModules();
    }
  });

  test.each([
    ['a tolerance that is not a number', { toleranceSeconds: Number.NaN }],
    ['an endless tolerance', { toleranceSeconds: Number.POSITIVE_INFINITY }],
    ['a time that is not a number', { now: Number.NaN }],
    ['no secrets', { secrets: undefined }],
    ['a secret that is not set', { secrets: [undefined] }],
  ])('refuses a webhook under %s before it looks at the delivery', (_what, invalid) => {
    const options = { secrets: 'whsec_AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tk=', ...invalid };
    const verify = (): unknown => verifyWebhook('{}', {}, options as never);
    expect(verify).toThrow(expect.objectContaining({ kind: 'config' }));
  });

  test.each([[{ type: 'consent.granted' }], [undefined], [null]])(
    'says that the body %s of a delivery was parsed',
    (body) => {
      const secret = `whsec_${'A'.repeat(43)}=`;
      const verify = (): unknown =>
        verifyWebhook(body as never, signWebhook('{}', { secret }), { secrets: secret });
      expect(verify).toThrow(
        expect.objectContaining({ kind: 'config', message: expect.stringContaining('raw bytes') }),
      );
    },
  );

  test('refuses what callers without types hand in, before any call', async () => {
    const client = clientOf(hangs);
    for (const check of [null, undefined, {}, { principalId: 7, purpose: 'a' }, { ...CHECK, minSeq: 1.5 }]) {
      expect(await kindOf(client.isAllowed(check as never))).toBe('invalid-request invalid-request');
    }
    expect(await kindOf(client.canProcessMany([null] as never))).toBe('invalid-request invalid-request');
    expect(await kindOf(client.canProcessMany('many' as never))).toBe('invalid-request invalid-request');
    expect(await kindOf(client.grant({ principalId: 'a', purposes: 'newsletter' } as never))).toBe(
      'invalid-request invalid-request',
    );
  });

  test('has the version of its package', () => {
    const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    expect(VERSION).toBe(manifest.version);
  });
});
