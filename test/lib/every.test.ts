import { expect, it } from 'vitest';
import { type Every, every } from '../../src/lib/jobs.ts';

/** A timer that ticks when the test says so, and a task that ends when the test says so. */
function createLoop() {
  const runs: { readonly succeed: () => void; readonly fail: (error: Error) => void }[] = [];
  const faults: unknown[] = [];
  let onTick: (() => void) | null = null;
  let refs = 1;
  const loop: Every = every(() => new Promise((succeed, fail) => void runs.push({ succeed, fail })), {
    ms: 20,
    timer(tick, ms) {
      expect(ms).toBe(20);
      onTick = tick;
      return {
        close: () => {
          onTick = null;
        },
        unref: () => {
          refs -= 1;
        },
      };
    },
    onFault: (error) => faults.push(error),
    onRecovered: () => faults.push('recovered'),
  });
  const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  return {
    loop,
    runs,
    faults,
    refs: () => refs,
    settle,
    tick: async (): Promise<void> => {
      onTick?.();
      await settle();
    },
    end: async (error: Error | null = null): Promise<void> => {
      const run = runs.at(-1);
      if (error) run?.fail(error);
      else run?.succeed();
      await settle();
    },
  };
}

it('runs at each tick, and never while a run is under way', async () => {
  const { runs, tick, end, refs } = createLoop();
  expect(runs).toHaveLength(0);
  await tick();
  await tick();
  await tick();
  expect(runs).toHaveLength(1);
  await end();
  expect(runs).toHaveLength(1);
  await tick();
  expect(runs).toHaveLength(2);
  expect(refs()).toBe(0);
});

it('complains of the first failure of a spell, and again after a success', async () => {
  const { faults, tick, end } = createLoop();
  const turns = [new Error('1'), new Error('2'), null, null, new Error('3'), new Error('4')];
  for (const turn of turns) {
    await tick();
    await end(turn);
  }
  expect(faults).toEqual([turns[0], 'recovered', turns[4]]);
});

it('soon() waits for the run under way and begins its own; callers at one time share it', async () => {
  const { loop, runs, tick, end, settle } = createLoop();
  await tick();
  const finished: string[] = [];
  const first = loop.runNow().then(() => finished.push('first'));
  const second = loop.runNow().then(() => finished.push('second'));
  await settle();
  expect(runs).toHaveLength(1);
  await end(new Error('not theirs'));
  expect(runs).toHaveLength(2);
  expect(finished).toEqual([]);
  await tick();
  expect(runs).toHaveLength(2);
  await end();
  await Promise.all([first, second]);
  expect(finished).toEqual(['first', 'second']);
});

it('soon() throws what its run throws, and counts towards the spell', async () => {
  const { loop, faults, tick, end, settle } = createLoop();
  const failure = new Error('away');
  for (const pendingRun of [loop.runNow(), null]) {
    const failed = expect(pendingRun ?? loop.runNow()).rejects.toBe(failure);
    await settle();
    await end(failure);
    await failed;
  }
  await tick();
  await end(failure);
  expect(faults).toEqual([failure]);
});

it('stop() waits for the run under way and the one that was asked for; no tick follows', async () => {
  const { loop, runs, tick, end, settle } = createLoop();
  await tick();
  loop.runNow().catch(() => {});
  let stopped = false;
  const stop = loop.stop().then(() => {
    stopped = true;
  });
  await settle();
  await end(new Error('the last'));
  expect(stopped).toBe(false);
  expect(runs).toHaveLength(2);
  await end();
  await stop;
  await tick();
  expect(runs).toHaveLength(2);
});

it('stop() of a loop that does nothing resolves', async () => {
  await createLoop().loop.stop();
});
