import { appendFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkCases, readCases } from './conformance/case.ts';
import { runCase } from './conformance/run-case.ts';
import { startServers } from './conformance/servers.ts';

const cases = checkCases(readCases());

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
    await runCase(one, started.servers);
    passed.add(one.name);
  });
});

describe('the runner', () => {
  const unknownKey = (path: (file: Record<string, never>) => object): (() => unknown) => {
    const file = structuredClone(readCases()) as Record<string, never>;
    Object.assign(path(file), { surprise: 1 });
    return () => checkCases(file);
  };

  test.each([
    ['the file', (file: never) => file],
    ['a case', ({ cases: [one] }: { cases: [object] }) => one],
    ['a step', ({ cases: [{ steps }] }: { cases: [{ steps: [object] }] }) => steps[0]],
    [
      'an expectation',
      ({ cases: [{ steps }] }: { cases: [{ steps: [{ expect: object }] }] }) => steps[0].expect,
    ],
  ])('refuses an unknown key in %s', (_name, path) => {
    expect(unknownKey(path as never)).toThrow(/surprise/);
  });
});
