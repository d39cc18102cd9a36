import { describe, expect, it, vi } from 'vitest';
import { createGroup, type GroupOptions, ItemFault } from '../../src/db/group-commit.ts';
import { OutcomeUnknown, Unavailable } from '../../src/lib/errors.ts';
import { fc } from '../support/property.ts';

interface Batch {
  readonly items: readonly number[];
  finish(): void;
  fail(error: Error): void;
}

/** A group whose batches end when the test says so; each item is answered with its double. */
function createControlled(options: Partial<GroupOptions<number, number>> = {}) {
  const batches: Batch[] = [];
  const group = createGroup<number, number>({
    name: 'test',
    run: (items) =>
      new Promise((resolve, reject) => {
        batches.push({ items, finish: () => resolve(items.map((item) => item * 2)), fail: reject });
      }),
    maxBatch: 100,
    maxWaiting: 1000,
    ...options,
  });
  return { group, batches };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const sizes = (batches: readonly Batch[]): number[] => batches.map(({ items }) => items.length);

describe('createGroup', () => {
  it('needs no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] });
    try {
      const { group, batches } = createControlled();
      const answer = group.submit(1);
      await turn();
      batches[0]?.finish();
      expect(await answer).toBe(2);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('gathers the next batch while one is in flight', async () => {
    const { group, batches } = createControlled();
    const first = group.submit(1);
    await turn();
    const rest: Promise<number>[] = [];
    for (const item of [2, 3, 4]) {
      rest.push(group.submit(item));
      await turn();
    }
    expect(sizes(batches)).toEqual([1]);
    batches[0]?.finish();
    expect(await first).toBe(2);
    await turn();
    expect(batches[1]?.items).toEqual([2, 3, 4]);
    batches[1]?.finish();
    expect(await Promise.all(rest)).toEqual([4, 6, 8]);
  });

  it('takes no more than maxBatch at a time, in the order in which they came', async () => {
    const { group, batches } = createControlled({ maxBatch: 4 });
    const answers = Array.from({ length: 10 }, (_, i) => group.submit(i));
    for (let i = 0; i < 3; i += 1) {
      await turn();
      batches[i]?.finish();
    }
    expect(await Promise.all(answers)).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
    expect(batches.map(({ items }) => items)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ]);
  });

  it('runs as many batches at once as it may', async () => {
    const { group, batches } = createControlled({ maxBatch: 1, concurrency: 2 });
    const answers = [1, 2, 3].map((item) => group.submit(item));
    await turn();
    expect(sizes(batches)).toEqual([1, 1]);
    batches[1]?.finish();
    expect(await answers[1]).toBe(4);
    await turn();
    expect(batches[2]?.items).toEqual([3]);
    batches[0]?.finish();
    batches[2]?.finish();
    expect(await Promise.all(answers)).toEqual([2, 4, 6]);
  });

  it('keeps to one key a batch and one batch a key, and lets nobody wait for another key', async () => {
    const keyOf = (item: number): string => (item % 2 === 0 ? 'even' : 'odd');
    const { group, batches } = createControlled({ keyOf, concurrency: 3, maxBatch: 3 });
    const answers = [1, 2, 3, 4, 5, 7, 9].map((item) => group.submit(item));
    await turn();
    const items = () => batches.map((batch) => batch.items);
    expect(items()).toEqual([
      [1, 3, 5],
      [2, 4],
    ]);
    batches[1]?.finish();
    expect(await answers[1]).toBe(4);
    await turn();
    expect(items()).toHaveLength(2);
    batches[0]?.finish();
    await answers[0];
    await turn();
    expect(items()[2]).toEqual([7, 9]);
    batches[2]?.finish();
    await group.idle();
    expect(await Promise.all(answers)).toEqual([2, 4, 6, 8, 10, 14, 18]);
  });

  it('rejects the member alone that a batch fails for, and goes on', async () => {
    const poison = new Set([3, 4, 9]);
    const runs: (readonly number[])[] = [];
    const group = createGroup<number, number>({
      name: 'test',
      run: (items) => {
        runs.push(items);
        const bad = items.find((item) => poison.has(item));
        if (bad !== undefined) return Promise.reject(new Error(`poisoned by ${bad}`));
        return Promise.resolve(items.map((item) => item * 2));
      },
      maxBatch: 8,
      maxWaiting: 1000,
    });
    const settled = await Promise.allSettled([1, 2, 3, 4, 5, 6, 7, 8, 9].map((item) => group.submit(item)));
    const results = settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message));
    const poisoned = [3, 4, 9].map((item) => `poisoned by ${item}`);
    expect(results).toEqual([2, 4, ...poisoned.slice(0, 2), 10, 12, 14, 16, poisoned[2]]);
    // In halves, and not one by one; what stands alone is not tried again.
    expect(runs.map((items) => items.join('')).join()).toBe('12345678,1234,12,34,3,4,5678,9');
    expect(await group.submit(10)).toBe(20);
  });

  it('tries a batch no further that finds the database away in its second half', async () => {
    const runs: number[] = [];
    const group = createGroup<number, number>({
      name: 'test',
      run: (items) => {
        runs.push(items.length);
        if (runs.length === 1) return Promise.reject(new Error('a fault'));
        if (runs.length === 3) return Promise.reject(new OutcomeUnknown(new Error('gone')));
        return Promise.resolve(items);
      },
      maxBatch: 4,
      maxWaiting: 1000,
    });
    const settled = await Promise.allSettled([1, 2, 3, 4].map((item) => group.submit(item)));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    // Done or not, nobody knows: it is not done again.
    expect(runs).toEqual([4, 2, 2]);
  });

  it('gives each item its own fault', async () => {
    const { group } = createControlled({
      run: async (items) => items.map((item) => (item === 2 ? new ItemFault('its own') : item)),
    });
    const settled = await Promise.allSettled([1, 2, 3].map((item) => group.submit(item)));
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(settled[1]).toMatchObject({ reason: 'its own' });
  });

  it('refuses what waits beside a batch that found the database away, and takes what comes after', async () => {
    const { group, batches } = createControlled({ maxBatch: 1 });
    const settled = Promise.allSettled([1, 2, 3].map((item) => group.submit(item)));
    await turn();
    batches[0]?.fail(new Unavailable('away'));
    const results = await settled;
    expect(
      results.map((result) => result.status === 'rejected' && result.reason instanceof Unavailable),
    ).toEqual([true, true, true]);
    expect(sizes(batches)).toEqual([1]);
    const after = group.submit(4);
    await turn();
    batches[1]?.finish();
    expect(await after).toBe(8);
  });

  it('goes on when the batch throws before it returns a promise', async () => {
    let calls = 0;
    const group = createGroup<number, number>({
      name: 'test',
      run: (items) => {
        calls += 1;
        if (calls === 1) throw new Error('at once');
        return Promise.resolve(items);
      },
      maxBatch: 1,
      maxWaiting: 10,
    });
    const [first, second] = await Promise.allSettled([group.submit(1), group.submit(2)]);
    expect([first.status, second.status]).toEqual(['rejected', 'fulfilled']);
  });

  it('is unavailable past its bound, and takes more when there is room again', async () => {
    const { group, batches } = createControlled({ maxBatch: 2, maxWaiting: 3 });
    const submitted = [1, 2].map((item) => group.submit(item));
    await turn();
    submitted.push(...[3, 4, 5].map((item) => group.submit(item)));
    const refused = await group.submit(6).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Unavailable);
    expect((refused as Unavailable).retryAfterSeconds).toBeGreaterThan(0);
    batches[0]?.finish();
    await turn();
    const later = group.submit(7);
    for (const i of [1, 2]) {
      batches[i]?.finish();
      await turn();
    }
    expect(await Promise.all([...submitted, later])).toEqual([2, 4, 6, 8, 10, 14]);
    expect(batches.flatMap(({ items }) => items)).not.toContain(6);
  });

  it('answers every item with its own result, whatever comes when', async () => {
    const wait = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        wait,
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 3 }),
        async (turnsToWait, maxBatch, concurrency) => {
          const runItems: number[] = [];
          const group = createGroup<number, string>({
            name: 'test',
            run: async (items) => {
              runItems.push(...items);
              for (let i = 0; i < (items[0] ?? 0) % 3; i += 1) await turn();
              return items.map((item) => `answer ${item}`);
            },
            maxBatch,
            maxWaiting: 100,
            concurrency,
          });
          const answers: Promise<string>[] = [];
          for (const [item, turns] of turnsToWait.entries()) {
            answers.push(group.submit(item));
            for (let i = 0; i < turns; i += 1) await turn();
          }
          expect(await Promise.all(answers)).toEqual(turnsToWait.map((_, item) => `answer ${item}`));
          expect(runItems).toEqual(turnsToWait.map((_, item) => item));
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('idle', () => {
  it('waits for what is in flight and for what waits, failures among them, and for nothing else', async () => {
    const { group, batches } = createControlled({ maxBatch: 1 });
    await group.idle();
    const answers = Promise.allSettled([group.submit(1), group.submit(2)]);
    let idle = 0;
    const waiting = [group.idle(), group.idle()].map((promise) =>
      promise.then(() => {
        idle += 1;
      }),
    );
    await turn();
    batches[0]?.fail(new Error('no'));
    await turn();
    expect(idle).toBe(0);
    batches[1]?.finish();
    await Promise.all(waiting);
    expect(idle).toBe(2);
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });
});
