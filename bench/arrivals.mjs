import { isMainThread, parentPort, workerData } from 'node:worker_threads';

/**
 * When requests of an open loop are due: a Poisson process, the same for the same seed. Run as a worker it sleeps until
 * each of them (a futex wakes within 0.1 ms, a timer of the event loop within 1 to 2 ms) and says how many are due now.
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
 * @param {number} rate a second
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

/** One clock for both threads: each has a `performance.timeOrigin` of its own. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

function pace() {
  const { rate, seed, total } = workerData;
  const next = createArrivals(rate, seed);
  const cell = new Int32Array(new SharedArrayBuffer(4));
  // The clock starts once this thread runs: the time that a thread takes to start is nobody's latency.
  const startedAt = now();
  parentPort?.postMessage({ startedAt });
  let at = startedAt + next();
  for (let sent = 0; sent < total; ) {
    const wait = at - now();
    if (wait > 0) Atomics.wait(cell, 0, 0, wait);
    let due = 0;
    for (const time = now(); at <= time && sent < total; sent += 1) {
      due += 1;
      at = startedAt + next();
    }
    if (due > 0) parentPort?.postMessage({ due });
  }
}

if (!isMainThread && workerData?.rate) pace();
