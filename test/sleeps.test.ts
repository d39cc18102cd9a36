import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const here = fileURLToPath(new URL('.', import.meta.url));
const LONGEST_MS = 100;
const WAIT = /\b(?:sleep|pause|waitForTimeout)\(([\d_]+)\)|\bsetTimeout\((?:resolve|done), ([\d_]+)\)/g;

/** These wait for real time, for the reason beside each; all are in suites with a command of their own. */
const ALLOWED: Readonly<Record<string, string>> = {
  'attack/schemathesis.ts': 'keys of the command line, in the time that is promised',
  'attack/smuggling.test.ts': 'the pace at which bytes go to a peer that may be gone',
  'browser/unseen.test.ts': 'a page that nobody sees sends nothing, in the time that the others need',
  'ops/systemd/heavy/notify.test.ts': 'a stopped process gives no sign for two and a half periods',
};

it('no test sleeps longer than 100 ms: it waits for an event, or a clock is handed in', () => {
  const names = readdirSync(here, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.tsx?$/.test(name),
  );
  const sleepers = names.filter((name) =>
    [...readFileSync(join(here, name), 'utf8').matchAll(WAIT)].some(
      ([, named, timed]) => Number((named ?? timed ?? '').replaceAll('_', '')) > LONGEST_MS,
    ),
  );
  expect(sleepers.sort()).toEqual(Object.keys(ALLOWED).sort());
});
