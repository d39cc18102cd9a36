import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { conformanceProblems, conformanceTable, SDKS } from '../bin/sdks.mjs';

const line = (name: string, passed: number, total: number): string =>
  `gpd-conformance ${name} ${passed}/${total}\n`;

/** Packages for pages have no client: test/browser-package.test.ts has theirs. */
const NO_CLIENTS = ['conformance', 'browser', 'react'];

describe('the SDKs that npm test runs', () => {
  it('are all that are there', () => {
    const entries = readdirSync(new URL('../sdk/', import.meta.url), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory() && !NO_CLIENTS.includes(entry.name));
    const names = SDKS.map(({ name }) => name);
    // Both ways: a folder that is gone would be passed over in silence.
    expect(folders.map(({ name }) => name).sort()).toEqual([...names].sort());
  });

  it.each([
    ['each passed the same cases', line('node', 64, 64) + line('go', 64, 64), ['node', 'go'], []],
    ['one that ran tells nothing', line('node', 64, 64), ['node', 'go'], ['go told no count']],
    ['a case failed', line('node', 63, 64), ['node'], ['node passed 63 of 64']],
    ['no case ran', line('node', 0, 0), ['node'], ['node passed 0 of 0']],
    [
      'one has fewer cases',
      line('node', 64, 64) + line('go', 63, 63),
      ['node', 'go'],
      ['the totals differ: 64, 63'],
    ],
  ])('%s: what is wrong', (_why, report, ran, problems) => {
    expect(conformanceProblems(report, ran)).toEqual(problems);
  });

  it('tells each case in each language', () => {
    const report = [
      'gpd-case node passed one',
      'gpd-case node failed another-case',
      'gpd-case go passed one',
      'gpd-case go passed another-case',
      'gpd-conformance go 2/2',
    ].join('\n');
    expect(conformanceTable(report).split('\n')).toEqual([
      'case          go  node',
      'one           ✓   ✓',
      'another-case  ✓   ✗',
      '',
    ]);
  });
});
