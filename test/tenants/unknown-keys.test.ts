import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type ApiKey, createApiKeySecret } from '../../src/auth/credentials.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { createUnknownKeys } from '../../src/tenants/key-finder-service.ts';

/** Unknown API keys wait for the look that the poll makes anyway. */

const createSecret = (): string => createApiKeySecret('secret', randomBytes);
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const limited = (seconds: string) => ({ code: 'rate-limited', headers: { 'retry-after': seconds } });

/** Creates a process whose looks see all earlier commits, with a clock and looks that the test controls. */
function createProcess() {
  let now = 0;
  const committed = new Set<string>();
  const revoked = new Set<string>();
  let memory = new Set<string>();
  const waiting: ((result: Promise<void>) => void)[] = [];
  const find = createUnknownKeys({
    findKnownKey: (secret) => {
      if (!memory.has(secret)) return null;
      return revoked.has(secret) ? 'revoked' : ({ id: secret } as ApiKey);
    },
    nextLook: () => new Promise((answer) => void waiting.push(answer)),
    now: () => now,
  });
  async function answerAll(result: () => Promise<void>): Promise<void> {
    for (const answer of waiting.splice(0)) answer(result());
    await turn();
  }
  return {
    find,
    committed,
    revoked,
    waiting,
    pass: (ms: number): void => {
      now += ms;
    },
    look: (): Promise<void> => {
      memory = new Set(committed);
      return answerAll(() => Promise.resolve());
    },
    failToLook: () => answerAll(() => Promise.reject(new Unavailable('the database cannot be read'))),
  };
}

describe('a key that this process does not know', () => {
  it('is found by the next look when there is one', async () => {
    const { find, committed, look } = createProcess();
    const secret = createSecret();
    const found = find(secret, 'a');
    committed.add(secret);
    await look();
    expect(await found).toMatchObject({ id: secret });
    expect(await find(secret, 'b')).toMatchObject({ id: secret });
  });

  it('is refused after the next look, and at once for a second', async () => {
    const { find, look, pass, waiting } = createProcess();
    const secret = createSecret();
    const refused = find(secret, 'a');
    await look();
    expect(await refused).toBeNull();
    pass(999);
    for (let i = 0; i < 5; i += 1) expect(await find(secret, 'a')).toBeNull();
    pass(1);
    const again = find(secret, 'a');
    expect(waiting).toHaveLength(1);
    await look();
    expect(await again).toBeNull();
  });

  it('waits as long as every other, whoever sends it', async () => {
    const { find, committed, look } = createProcess();
    const guesses = Array.from({ length: 200 }, () => find(createSecret(), 'a'));
    const secret = createSecret();
    committed.add(secret);
    const found = find(secret, 'b');
    await look();
    expect(await found).toMatchObject({ id: secret });
    expect(await Promise.all(guesses)).toEqual(guesses.map(() => null));
  });

  it.each(['', 'gpd_sk_', `gpd_sk_${'A'.repeat(42)}`, `gpd_xx_${'A'.repeat(43)}`, `${'A'.repeat(50)}`])(
    'is refused at once when it has not the form of one: %j',
    async (secret) => {
      const { find, waiting } = createProcess();
      expect(await find(secret, 'a')).toBeNull();
      expect(waiting).toEqual([]);
    },
  );

  it('is refused at once when it was revoked, once that is known', async () => {
    const { find, committed, revoked, look, waiting } = createProcess();
    const secret = createSecret();
    committed.add(secret);
    revoked.add(secret);
    const first = find(secret, 'a');
    await look();
    expect([await first, await find(secret, 'b')]).toEqual([null, null]);
    expect(waiting).toEqual([]);
  });

  it('is not judged while the database cannot be read', async () => {
    const { find, committed, look, failToLook } = createProcess();
    const secret = createSecret();
    committed.add(secret);
    const failed = find(secret, 'a');
    const answered = expect(failed).rejects.toThrow(Unavailable);
    await failToLook();
    await answered;
    const again = find(secret, 'a');
    await look();
    expect(await again).toMatchObject({ id: secret });
  });

  it('does not wait for a client over its limit, and one that is known is found', async () => {
    const { find, committed, look, waiting } = createProcess();
    const secret = createSecret();
    committed.add(secret);
    await expect(find(secret, 'a', 30)).rejects.toMatchObject(limited('30'));
    expect(waiting).toEqual([]);
    await look();
    expect(await find(secret, 'a', 30)).toMatchObject({ id: secret });
  });

  it.each([
    ['255 others of its client', 256, (): string => 'a'],
    ['999 others in all', 1000, (i: number): string => `client ${i}`],
  ])('waits with %s at most: past it the answer is 429', async (_most, count, clientOf) => {
    const { find, look } = createProcess();
    const guesses = Array.from({ length: count }, (_, i) => find(createSecret(), clientOf(i)));
    await expect(find(createSecret(), 'a')).rejects.toMatchObject(limited('1'));
    await look();
    expect(await Promise.all(guesses)).toEqual(guesses.map(() => null));
    const next = find(createSecret(), 'a');
    await look();
    expect(await next).toBeNull();
  });
});
