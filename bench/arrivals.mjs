import { isMainThread, parentPort, workerData } from 'node:worker_threads';

/**
 * Computes when the requests of an open loop are due: a Poisson process with a seed. As a worker it sleeps until each of
 * them and posts how many are due: a futex wakes within 0.1 ms, a timer of the event loop within 1 to 2 ms.
 */

/** @param {number} seed mulberry32, as `seededRandom` in lib/stats.ts */
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * @param {number} rate requests per second
 * @param {number} seed
 * @returns {() => number} milliseconds from the start to the next arrival, ascending
 */
export function createArrivals(rate, seed) {
  const random = seeded(seed);
  let at = 0;
  return () => {
    at += (-Math.log(1 - random()) / rate) * 1000;
    return at;
  };
}

/** Milliseconds of a clock that both threads share, unlike `performance.now`, whose origin differs. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

function pace() {
  const { rate, seed, total } = workerData;
  const next = createArrivals(rate, seed);
  const cell = new Int32Array(new SharedArrayBuffer(4));
  // Read after this thread has started, so that its start counts as no request's latency.
  const startedAt = now();
  parentPort?.postMessage({ startedAt });
  let at = startedAt + next();
  for (let sentCount = 0; sentCount < total; ) {
    const wait = at - now();
    if (wait > 0) Atomics.wait(cell, 0, 0, wait);
    let due = 0;
    for (const time = now(); at <= time && sentCount < total; sentCount += 1) {
      due += 1;
      at = startedAt + next();
    }
    if (due > 0) parentPort?.postMessage({ due });
  }
}

if (!isMainThread && workerData?.rate) pace();
