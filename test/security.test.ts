import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** docs/security.md names a test for what it says: each is there, and no requirement of the ASVS is left out. */

const root = fileURLToPath(new URL('..', import.meta.url));
const PAGE = 'docs/security.md';
const text = readFileSync(join(root, PAGE), 'utf8');

/** The requirements of levels 1 and 2 in ASVS 5.0.0, section:last, each from 1 without gaps. */
const SECTIONS = `
  1.1:2 1.2:9 1.3:11 1.4:3 1.5:2
  2.1:3 2.2:3 2.3:4 2.4:1
  3.2:2 3.3:4 3.4:6 3.5:5 3.7:2
  4.1:3 4.2:1 4.3:2 4.4:4
  5.1:1 5.2:3 5.3:2 5.4:3
  6.1:3 6.2:12 6.3:4 6.4:4 6.5:5 6.6:3 6.8:4
  7.1:3 7.2:4 7.3:2 7.4:5 7.5:2 7.6:2
  8.1:2 8.2:3 8.3:1 8.4:1
  9.1:3 9.2:4
  10.1:2 10.2:2 10.3:4 10.4:11 10.5:5 10.6:2 10.7:3
  11.1:2 11.2:3 11.3:3 11.4:4 11.5:1 11.6:1
  12.1:3 12.2:2 12.3:4
  13.1:1 13.2:5 13.3:2 13.4:5
  14.1:2 14.2:4 14.3:3
  15.1:3 15.2:3 15.3:7
  16.1:1 16.2:5 16.3:4 16.4:3 16.5:3
  17.1:1 17.2:4 17.3:2
`;
const asked = [...SECTIONS.matchAll(/([\d.]+):(\d+)/g)].flatMap(([, section, last]) =>
  Array.from({ length: Number(last) }, (_, i) => `${section}.${i + 1}`),
);

interface Requirement {
  readonly ids: readonly string[];
  readonly state: string;
  readonly links: readonly string[];
}

function expand(cell: string): string[] {
  return cell.split(', ').flatMap((part) => {
    const [from = '', to] = part.split('-');
    if (to === undefined) return [from];
    const section = from.split('.').slice(0, 2).join('.');
    const [first, last] = [from, to].map((id) => Number(id.split('.')[2]));
    return Array.from({ length: (last ?? 0) - (first ?? 0) + 1 }, (_, i) => `${section}.${(first ?? 0) + i}`);
  });
}

const linksOf = (cell: string): string[] =>
  [...cell.matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => link ?? '');
const cellsOf = (line: string): string[] => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, ''));

const rows: readonly Requirement[] = text
  .slice(text.indexOf('## OWASP ASVS'))
  .split('\n')
  .filter((line) => /^\| \d+\.\d+\.\d+/.test(line))
  .map((line) => {
    const [ids = '', , state = '', shown = ''] = cellsOf(line);
    return { ids: expand(ids), state, links: linksOf(shown) };
  });

const isTest = (link: string): boolean => /^\.\.\/test\/.*\.test\.tsx?$/.test(link);

describe('the ASVS table', () => {
  it('has every requirement of levels 1 and 2, once', () => {
    expect(asked).toHaveLength(253);
    const told = rows.flatMap(({ ids }) => ids);
    expect(told.filter((id, i) => told.indexOf(id) !== i)).toEqual([]);
    expect([...told].sort()).toEqual([...asked].sort());
  });

  it.each(rows.map((row) => [row.ids.join(', '), row] as const))(
    '%s: a state, and what shows it',
    (_ids, row) => {
      const state = /^(met|written|part|operator|n\/a)(?:[:;] (.+))?$/.exec(row.state);
      expect(state, row.state).not.toBeNull();
      const [, word = '', reason = ''] = state ?? [];
      if (word === 'n/a') expect(row.links).toEqual([]);
      else expect(row.links.length).toBeGreaterThan(0);
      if (word === 'met') expect(row.links.filter((link) => !isTest(link))).toEqual([]);
      if (word === 'part' || word === 'operator' || word === 'n/a') expect(reason.length).toBeGreaterThan(10);
    },
  );
});

describe('docs/security.md', () => {
  it('names only tests that are there', () => {
    const named = linksOf(text).filter((link) => link.includes('/test/'));
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter((link) => !isTest(link))).toEqual([]);
    const gone = named.filter((link) => !existsSync(join(root, dirname(PAGE), link)));
    expect(gone).toEqual([]);
  });

  it('has a test in every row of its tables of threats and attacks', () => {
    const [, ...sections] = text.split(/^## /m);
    const tables = sections.filter((section) => /^(By kind|Attacks)/.test(section));
    expect(tables).toHaveLength(2);
    for (const table of tables) {
      const lines = table.split('\n').filter((line) => /^\| (?!kind|attack)/.test(line));
      expect(lines.length).toBeGreaterThan(15);
      const untested = lines.filter((line) => linksOf(line).filter(isTest).length === 0);
      expect(untested).toEqual([]);
    }
  });
});
