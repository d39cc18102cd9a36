import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { longSleeps } from './support/sleeps.ts';

/** No test sleeps longer than 100 ms: it waits for an event, or a clock is handed in. */

const here = fileURLToPath(new URL('.', import.meta.url));

/** What waits for real time, and why; all of it in suites with a command of their own. */
const ALLOWED: readonly (readonly [sleep: string, why: string])[] = [
  ['attack/idle.test.ts: pause(500)', 'slow senders: the pace is the attack'],
  ['attack/idle.test.ts: pause(300)', 'nothing happens, and nobody tells of it: the log of another process'],
  [
    'attack/schemathesis.ts: setTimeout(resolve, 5000)',
    'keys of the command line, in the time that is promised',
  ],
  ['attack/smuggling.test.ts: pause(300)', 'the pace at which bytes go to a peer that may be gone'],
  ['attack/ssrf.test.ts: setTimeout(resolve, 2000)', 'nothing is fetched: two rounds of another process'],
  ['attack/support/raw.ts: pause(gapMs)', 'the gap between two parts of a request is the attack'],
  [
    'cluster/rates.test.ts: setTimeout(resolve, left + 50)',
    'windows begin with the minute of the wall clock',
  ],
  ['fault/clock.test.ts: sleep(1100)', 'other processes under a set clock: a checkpoint may be a second old'],
  [
    'fault/clock.test.ts: sleep(REST_OF_SWEEP_MS)',
    'the rest of a sweep in another process, which tells nobody',
  ],
  ['fault/postgres.test.ts: sleep(Math.random() * 500)', 'the fault strikes at any moment of the load'],
  ['fault/postgres.test.ts: sleep(fault.ms)', 'so long the database is away'],
  [
    'fault/support/kill.ts: sleep(MIN_MS + Math.random() * (MAX_MS - MIN_MS))',
    'kill -9 strikes at any moment',
  ],
  ['ops/systemd/heavy/notify.test.ts: pause(300)', 'signs on their way before SIGSTOP'],
  [
    'ops/systemd/heavy/notify.test.ts: pause(1500)',
    'a stopped process gives no sign for two and a half periods',
  ],
];

const asleep = (...files: readonly (readonly [string, string])[]): string[] => longSleeps(new Map(files));

describe('tests', () => {
  it('sleep no longer than 100 ms, but for those that are named here', () => {
    const names = readdirSync(here, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.tsx?$/.test(name),
    );
    expect(names.length).toBeGreaterThan(300);
    const found = asleep(
      ...names.map((name) => [name.replaceAll('\\', '/'), readFileSync(join(here, name), 'utf8')] as const),
    );
    expect(found.sort()).toEqual(ALLOWED.map(([sleep]) => sleep).sort());
  });
});

describe('the check itself', () => {
  const IMPORT = "import { setTimeout as sleep } from 'node:timers/promises';\n";

  it.each([
    ['a promise', 'await new Promise((resolve) => setTimeout(resolve, 101));'],
    ['a promise with a value', 'await new Promise((done) => setTimeout(() => done(1), 2e3));'],
    ['a constant', `${IMPORT}const LONG_MS = 5 * 50;\nawait sleep(LONG_MS);`],
    ['a part of a constant', `${IMPORT}const LONG_MS = 1_000;\nawait sleep(LONG_MS / 2);`],
    ['a list', `${IMPORT}for (const ms of [1, 200]) await sleep(ms);`],
    ['chance', `${IMPORT}await sleep(10 + Math.random() * 500);`],
    ['what nobody can tell', `${IMPORT}await sleep(options.ms);`],
    ['a page', 'await page.waitForTimeout(300);'],
    ['its own function', 'const pause = (ms) => new Promise((go) => setTimeout(go, ms));\nawait pause(150);'],
    ['its own function that adds', 'const wait = (n) => new Promise((go) => setTimeout(go, n * 1000));'],
  ])('finds a sleep by %s', (_what, source) => {
    expect(asleep(['a.test.ts', source])).toHaveLength(1);
  });

  it('finds one by a function of another file', () => {
    const helper = 'export function rest(ms) { return new Promise((go) => setTimeout(go, ms)); }';
    const user = "import { rest } from './help.ts';\nawait rest(20); await rest(400);";
    expect(asleep(['a.test.ts', user], ['help.ts', helper])).toEqual(['a.test.ts: rest(400)']);
  });

  it.each([
    ['a tenth of a second', `${IMPORT}await sleep(100);`],
    ['a limit', `${IMPORT}await Promise.race([work(), sleep(5000, null, { ref: false })]);`],
    ['a guard', 'const timer = setTimeout(() => child.kill(), 50_000);'],
    ['a time-out', 'await vi.waitFor(look, { timeout: 20_000 });'],
  ])('leaves %s', (_what, source) => {
    expect(asleep(['a.test.ts', source])).toEqual([]);
  });
});
