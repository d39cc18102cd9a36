import { describe, expect, it, vi } from 'vitest';
import type { ApiKey, PrincipalSession } from '../../src/auth/credentials.ts';
import { authorize } from '../../src/http/authorize.ts';
import { createMemoryLimiter, refuseOver, watchLimiter } from '../../src/http/limiter.ts';
import { Refusal } from '../../src/lib/errors.ts';
import { ROUTES } from '../../src/schema/routes.ts';

/** A caller without a secret of their own is counted by the address they call from. */

const CLIENT = 3;
const WITHDRAWALS = 2;
const SHARED = 5;
const perMinute = (points: number) => createMemoryLimiter({ points, seconds: 60 });

const keyOf = (scope: ApiKey['scope']) => ({ kid: 'acme', scope, hash: `hash of ${scope}` }) as ApiKey;
const KEYS = new Map([
  ['page', keyOf('publishable')],
  ['backend', keyOf('secret')],
]);
const SESSION = { kid: 'acme', principal: 'ref', principalId: 'u-1' } as PrincipalSession;

function createApi() {
  let now = 0;
  const looked: string[] = [];
  const deps = {
    async findApiKey(secret: string, _client: string, spentPoints: number) {
      const key = KEYS.get(secret);
      if (key) return key;
      refuseOver(spentPoints);
      looked.push(secret);
      return null;
    },
    async findSession(token: string) {
      looked.push(token);
      return token === 'gpd_ps_anna' ? SESSION : null;
    },
    limits: {
      key: perMinute(SHARED),
      client: watchLimiter(perMinute(CLIENT), () => now),
      withdrawal: watchLimiter(perMinute(WITHDRAWALS), () => now),
      state: watchLimiter(perMinute(CLIENT), () => now),
      newcomer: perMinute(1),
      anonymous: perMinute(1000),
    },
    knowsOrigin: () => false,
  };
  return {
    looked,
    pass: (ms: number): void => {
      now += ms;
    },
    /** `ok`, or the code of the refusal. */
    async call(row: keyof typeof ROWS, token: string, client = 'a'): Promise<string> {
      const headers = { authorization: `Bearer ${token}` };
      try {
        await authorize(deps, { headers, limitKey: client }, ROWS[row]);
        return 'ok';
      } catch (error) {
        if (error instanceof Refusal) return error.code;
        throw error;
      }
    },
  };
}

const ROWS = {
  purposes: ROUTES.listPurposes,
  withdraw: ROUTES.withdrawConsent,
  history: ROUTES.listConsentHistory,
  state: ROUTES.getConsentState,
};

type Api = ReturnType<typeof createApi>;
const times = async (count: number, call: () => Promise<string>): Promise<string[]> => {
  const answers: string[] = [];
  for (let i = 0; i < count; i += 1) answers.push(await call());
  return answers;
};
const flood = (api: Api, row: keyof typeof ROWS, token: string) => times(20, () => api.call(row, token));

it('a window is never longer than its seconds, though the clock was set back since it began', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const limiter = perMinute(1);
  expect([await limiter('a'), await limiter('a')]).toEqual([0, 60]);
  vi.setSystemTime(Date.now() - 3_600_000);
  expect(await limiter('a')).toBe(60);
  vi.useRealTimers();
});

it('a client over its limit costs no counter until its window ends', async () => {
  let now = 0;
  let counted = 0;
  const counter = async () => {
    counted += 1;
    return counted > 1 ? 60 : 0;
  };
  const { charge, spent: spentOf } = watchLimiter(counter, () => now);
  expect([await charge('a'), spentOf('a'), await charge('a'), spentOf('a')]).toEqual([0, 0, 60, 60]);
  now = 59_001;
  expect([await charge('a'), spentOf('a'), spentOf('b')]).toEqual([1, 1, 0]);
  expect(counted).toBe(2);
  now = 60_000;
  expect([spentOf('a'), await charge('a')]).toEqual([0, 60]);
});

it('a client over its limit is not forgotten for all others that go over theirs', async () => {
  const charged: string[] = [];
  const { charge, spent: spentOf } = watchLimiter(
    async (key) => {
      charged.push(key);
      return 60;
    },
    () => 0,
  );
  await charge('a');
  for (let i = 0; i < 20_000; i += 1) {
    await charge(`other ${i}`);
    if (i % 1000 === 0) expect(spentOf('a')).toBe(60);
  }
  await charge('a');
  expect(charged.filter((key) => key === 'a')).toHaveLength(1);
});

describe('a key that is a secret, and a session', () => {
  it.each(['backend', 'gpd_ps_anna'])('%s withdraws while its other calls are 429', async (token) => {
    const api = createApi();
    const all = await flood(api, 'history', token);
    expect(all.filter((answer) => answer === 'ok')).toHaveLength(SHARED);
    expect(await times(SHARED, () => api.call('withdraw', token))).toEqual(Array(SHARED).fill('ok'));
    expect(await api.call('withdraw', token)).toBe('rate-limited');
  });
});

describe('a token that nobody has', () => {
  it.each(['gpd_ps_guess', 'guess'])('counts against its client: %s', async (token) => {
    const api = createApi();
    const answers = [...Array(CLIENT).fill('unauthenticated'), ...Array(20 - CLIENT).fill('rate-limited')];
    expect(await flood(api, 'history', token)).toEqual(answers);
    // The call that goes over is looked up, and the next ones are not.
    expect(api.looked).toHaveLength(CLIENT + 1);
    expect(await api.call('purposes', 'page')).toBe('rate-limited');
    expect(await api.call('history', token, 'b')).toBe('unauthenticated');
    api.pass(60_000);
    await api.call('history', token);
    expect(api.looked).toHaveLength(CLIENT + 3);
  });

  it('stops no key that is known, and no withdrawal', async () => {
    const api = createApi();
    await flood(api, 'history', 'gpd_ps_guess');
    expect(await api.call('history', 'backend')).toBe('ok');
    expect(await api.call('history', 'gpd_ps_anna')).toBe('rate-limited');
    expect(await api.call('withdraw', 'gpd_ps_anna')).toBe('ok');
    expect(await api.call('state', 'gpd_ps_anna')).toBe('ok');
    expect(await api.call('withdraw', 'page')).toBe('ok');
  });

  it('is limited where withdrawals are taken, too', async () => {
    const api = createApi();
    const answers = await flood(api, 'withdraw', 'gpd_ps_guess');
    expect(answers.filter((answer) => answer === 'unauthenticated')).toHaveLength(WITHDRAWALS);
    expect(api.looked).toHaveLength(WITHDRAWALS + 1);
    expect(await api.call('withdraw', 'page', 'b')).toBe('ok');
  });
});
