import { expect, it } from 'vitest';
import { makeSlots } from '../../src/cli/replay/slots.ts';

interface Job {
  readonly work: () => Promise<void>;
  readonly finish: () => void;
  readonly fail: (error: Error) => void;
}

function makeJob(started: number[], id: number): Job {
  let [finish, fail] = [(): void => {}, (_error: Error): void => {}];
  const promise = new Promise<void>((resolve, reject) => {
    [finish, fail] = [resolve, reject];
  });
  const work = (): Promise<void> => {
    started.push(id);
    return promise;
  };
  return { work, finish: () => finish(), fail: (error) => fail(error) };
}

async function isSettled(promise: Promise<void>): Promise<boolean> {
  const waiting = Symbol('waiting');
  const turn = new Promise((resolve) => setImmediate(resolve, waiting));
  return (await Promise.race([promise, turn])) !== waiting;
}

it('starts in order, and no more at once than there are slots', async () => {
  const started: number[] = [];
  const [a, b, c] = [0, 1, 2].map((id) => makeJob(started, id)) as [Job, Job, Job];
  const slots = makeSlots(2);
  await slots.start(a.work);
  const full = slots.start(b.work);
  expect(started).toEqual([0, 1]);
  expect(await isSettled(full)).toBe(false);
  b.finish();
  await full;
  const again = slots.start(c.work);
  expect(started).toEqual([0, 1, 2]);
  a.finish();
  await again;
  const drained = slots.drained();
  expect(await isSettled(drained)).toBe(false);
  c.finish();
  await drained;
});

it('says what failed to whoever waits, with others still under way', async () => {
  const [a, b] = [0, 1].map((id) => makeJob([], id)) as [Job, Job];
  const slots = makeSlots(2);
  await slots.start(a.work);
  const full = slots.start(b.work);
  b.fail(new Error('no answer'));
  await expect(full).rejects.toThrow('no answer');
  await expect(slots.drained()).rejects.toThrow('no answer');
  a.finish();
});

it('says at the next start what failed in between', async () => {
  const slots = makeSlots(3);
  await slots.start(() => Promise.reject(new Error('no answer')));
  await new Promise(setImmediate);
  await expect(slots.start(() => Promise.resolve())).rejects.toThrow('no answer');
});

it('drains at once when nothing was started', async () => {
  await makeSlots(1).drained();
});
