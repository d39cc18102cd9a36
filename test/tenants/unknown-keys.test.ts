import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type ApiKey, createApiKeySecret } from '../../src/auth/credentials.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { createUnknownKeys } from '../../src/tenants/key-finder-service.ts';

/** Limits on the reads that unknown API keys can cause. */

const createSecret = (): string => createApiKeySecret('secret', randomBytes);
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const limited = (seconds: string) => ({ code: 'rate-limited', headers: { 'retry-after': seconds } });

/** Creates a process whose reads see all earlier commits, with a clock that the test advances. */
function createProcess() {
  let now = 0;
  let failing = false;
  const committed = new Set<string>();
  const revoked = new Set<string>();
  let memory = new Set<string>();
  const reads: number[] = [];
  const sleepers: { readonly until: number; readonly wake: () => void }[] = [];
  const find = createUnknownKeys({
    findKnownKey: (secret) => {
      if (!memory.has(secret)) return null;
      return revoked.has(secret) ? 'revoked' : ({ id: secret } as ApiKey);
    },
    async refresh() {
      reads.push(now);
      await turn();
      if (failing) throw new Unavailable('the database cannot be read');
      memory = new Set(committed);
    },
    now: () => now,
    sleep: (ms) => new Promise((wake) => void sleepers.push({ until: now + ms, wake })),
  });
  return {
    find,
    committed,
    revoked,
    reads,
    fail: (yes: boolean): void => {
      failing = yes;
    },
    pass: async (ms: number): Promise<void> => {
      await turn();
      now += ms;
      for (const sleeper of sleepers) if (sleeper.until <= now) sleeper.wake();
      await turn();
      await turn();
    },
  };
}

describe('a key that this process does not know', () => {
  it('is refused for a second without another read, and read for again after it', async () => {
    const { find, reads, pass } = createProcess();
    const secret = createSecret();
    for (let i = 0; i < 5; i += 1) expect(await find(secret, 'a')).toBeNull();
    expect(reads).toEqual([0]);
    await pass(999);
    expect(await find(secret, 'a')).toBeNull();
    expect(reads).toEqual([0]);
    await pass(1);
    expect(await find(secret, 'a')).toBeNull();
    expect(reads).toEqual([0, 1000]);
  });

  it('costs a client one read a second, however many it tries', async () => {
    const { find, reads, pass } = createProcess();
    const guesses = Array.from({ length: 200 }, () => find(createSecret(), 'a'));
    await pass(400);
    guesses.push(...Array.from({ length: 50 }, () => find(createSecret(), 'a')));
    await pass(600);
    expect(await Promise.all(guesses)).toEqual(guesses.map(() => null));
    expect(reads).toEqual([0, 1000]);
    await pass(500);
    const later = find(createSecret(), 'a');
    await pass(500);
    expect(await later).toBeNull();
    expect(reads).toEqual([0, 1000, 2000]);
  });

  it('is found among them when there is one, a second later at most', async () => {
    const { find, committed, pass } = createProcess();
    for (let i = 0; i < 100; i += 1) void find(createSecret(), 'a');
    await pass(10);
    const secret = createSecret();
    committed.add(secret);
    const found = find(secret, 'a');
    // Nobody else waits.
    const other = createSecret();
    committed.add(other);
    expect(await find(other, 'b')).toMatchObject({ id: other });
    await pass(990);
    expect(await found).toMatchObject({ id: secret });
  });

  it('costs nothing when it was found: the next one is read for at once', async () => {
    const { find, committed, reads } = createProcess();
    for (let i = 0; i < 3; i += 1) {
      const secret = createSecret();
      committed.add(secret);
      expect(await find(secret, 'a')).toMatchObject({ id: secret });
    }
    expect(reads).toHaveLength(3);
  });

  it('is read for once by all who come with it at one time', async () => {
    const { find, committed, reads } = createProcess();
    const secret = createSecret();
    committed.add(secret);
    const found = await Promise.all(['a', 'a', 'b', 'c'].map((client) => find(secret, client)));
    expect(found).toEqual(found.map(() => ({ id: secret })));
    expect(reads).toHaveLength(1);
  });

  it.each(['', 'gpd_sk_', `gpd_sk_${'A'.repeat(42)}`, `gpd_xx_${'A'.repeat(43)}`, `${'A'.repeat(50)}`])(
    'is not read for when it has not the form of one: %j',
    async (secret) => {
      const { find, reads } = createProcess();
      expect(await find(secret, 'a')).toBeNull();
      expect(reads).toEqual([]);
    },
  );

  it('is refused at once when it was revoked, without a read once that is known', async () => {
    const { find, committed, revoked, reads } = createProcess();
    const secret = createSecret();
    committed.add(secret);
    revoked.add(secret);
    expect([await find(secret, 'a'), await find(secret, 'b')]).toEqual([null, null]);
    expect(reads).toEqual([0]);
  });

  it('is not judged while the database cannot be read', async () => {
    const { find, committed, fail, pass } = createProcess();
    fail(true);
    const secret = createSecret();
    committed.add(secret);
    await expect(find(secret, 'a')).rejects.toThrow(Unavailable);
    fail(false);
    const again = find(secret, 'a');
    await pass(1000);
    expect(await again).toMatchObject({ id: secret });
  });

  it('is not looked for on behalf of a client over its limit, and one that is known is found', async () => {
    const { find, committed, reads } = createProcess();
    const secret = createSecret();
    committed.add(secret);
    await expect(find(secret, 'a', 30)).rejects.toMatchObject(limited('30'));
    expect(reads).toEqual([]);
    await find(secret, 'b');
    expect(await find(secret, 'a', 30)).toMatchObject({ id: secret });
  });

  it('waits with 255 others at most: past it the answer is 429', async () => {
    const { find, pass } = createProcess();
    const guesses = Array.from({ length: 256 }, () => find(createSecret(), 'a'));
    await expect(find(createSecret(), 'a')).rejects.toMatchObject(limited('1'));
    await pass(1000);
    expect(await Promise.all(guesses)).toEqual(guesses.map(() => null));
    expect(await find(createSecret(), 'b')).toBeNull();
  });
});
