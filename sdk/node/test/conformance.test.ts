import { appendFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCases } from '../../conformance/check-cases.mjs';
import { difference, substitute } from '../../conformance/match.mjs';
import { runCase as driveCase } from '../../conformance/run-case.mjs';
import { runCase } from './conformance/run-case.ts';
import { startServers } from './conformance/servers.ts';

const cases = readCases() as readonly { readonly name: string }[];

describe('conformance', () => {
  let started: Awaited<ReturnType<typeof startServers>>;
  const passed = new Set<string>();

  beforeAll(async () => {
    started = await startServers();
  });

  afterAll(async () => {
    // bin/sdks.mjs compares this line between the languages.
    const line = `gpd-conformance node ${passed.size}/${cases.length}\n`;
    process.stdout.write(line);
    const report = process.env['GPD_CONFORMANCE_REPORT'];
    const results = cases.map(
      ({ name }) => `gpd-case node ${passed.has(name) ? 'passed' : 'failed'} ${name}\n`,
    );
    if (report) appendFileSync(report, results.join('') + line);
    await started.stop();
  });

  test.each(cases)('$name', async (one) => {
    await runCase(one.name, started.servers);
    passed.add(one.name);
  });
});

describe('the runner of all languages', () => {
  type Shared = { cases: [{ steps: [{ expect: object }] }] };

  test.each([
    ['the file', (file: Shared) => file],
    ['a case', ({ cases: [one] }: Shared) => one],
    ['a step', ({ cases: [{ steps }] }: Shared) => steps[0]],
    ['an expectation', ({ cases: [{ steps }] }: Shared) => steps[0].expect],
  ])('refuses an unknown key in %s', (_name, path) => {
    const file = JSON.parse(JSON.stringify({ cases })) as Shared;
    Object.assign(path(file), { surprise: 1 });
    expect(() => readCases(file)).toThrow(/surprise/);
  });

  test('refuses unknown matchers and names, and compares types', () => {
    expect(() => difference('a', { $like: 'a' })).toThrow(/matcher/);
    expect(() => substitute('$' + '{nobody}', new Map())).toThrow(/nobody/);
    expect(difference(true, 1)).not.toBeNull();
    expect(difference({ a: 1, b: 2 }, { a: 1 })).toBeNull();
    expect(difference({ a: 1, b: 2 }, { a: 1 }, 'body', true)).not.toBeNull();
  });

  test.each([
    ['another result', { result: 2 }, /expected 1/],
    ['an error', { error: { kind: 'server' } }, /it failed/],
    ['the key in an error', { result: 1, printed: 'Error: gpd_sk_key' }, /tells gpd_sk_key/],
    ['a rule of the language that was broken', { problem: 'no call guess' }, /no call guess/],
  ])('refuses %s', async (_what, outcome, problem) => {
    const one = { kind: 'pure', steps: [{ call: 'ping', args: {}, expect: { result: 1 } }] };
    const keys = { secret: 'gpd_sk_key', publishable: 'gpd_pk_key' };
    const addresses = { url: '', stub: '', vkey: '', requestId: '', keys, variables: {} };
    const run = driveCase(one, addresses);
    await run.next({});
    await expect(run.next(outcome)).rejects.toThrow(problem);
  });
});
