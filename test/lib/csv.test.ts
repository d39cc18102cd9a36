import { describe, expect, it } from 'vitest';
import { csvCell, csvRecord } from '../../src/lib/text.ts';

describe('a cell of a CSV', () => {
  it.each([
    ['plain', 'plain'],
    ['', ''],
    ['a,b', '"a,b"'],
    ['say "so"', '"say ""so"""'],
    ['two\nlines', '"two\nlines"'],
    ['two\r\nlines', '"two\nlines"'],
    // A carriage return alone ends a line for some readers.
    ['a\rb', 'a[U+000D]b'],
    ['1-2', '1-2'],
    ['a=b', 'a=b'],
  ])('%j is %j', (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  it.each([
    '=1+1',
    '+1',
    '-1',
    '@SUM(A1)',
    '  =1',
    '\u00A0=1',
    '\u3000+1',
    '＝1',
    '＋1',
    '－1',
    '＠A',
    '=HYPERLINK("http://evil.example/","x")',
    "=cmd|' /C calc'!A0",
    '\tcalc',
  ])('%j is text and no formula', (text) => {
    const cell = csvCell(text);
    const content = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
    expect(content).toBe(`'${text}`);
  });

  it.each([
    ['\t=1', '"\'\t\'=1"'],
    ['\n=1', '"\'\n\'=1"'],
    ['x;=1+1', '"x;\'=1+1"'],
    ['x; \u00A0＝1', '"x;\' \u00A0＝1"'],
    ['x\t+1;-1', '"x\t\'+1;\'-1"'],
    ['x\r\n@A1', '"x\n\'@A1"'],
    // Read so, a cell of its own in quotes.
    ['x;"=1+1";', '"x;\'""=1+1"";"'],
    ['one; two, -three', '"one; two, -three"'],
  ])('%j is no formula where a semicolon ends a cell', (text, cell) => {
    expect(csvCell(text)).toBe(cell);
    // Our quotes end up in the middle of the first cell of such a spreadsheet.
    const cells = `req_1,${cell}`.split(/[;\t\n]/).map((each) => each.replaceAll('"', '').trim());
    expect(cells.filter((each) => /^[=+\-@＝]/u.test(each))).toEqual([]);
  });

  it('cannot hide or reverse its content', () => {
    expect(csvCell('\u202Egpj.exe\u2066\u200B\u0000')).toBe('[U+202E]gpj.exe[U+2066][U+200B][U+0000]');
    expect(csvCell('\uD800')).toBe('\uFFFD');
    // A hidden character in front must not save a formula.
    expect(csvCell('\u202E=1')).toBe('[U+202E]=1');
  });

  it('leaves numbers and truth as they are, and nothing where there is nothing', () => {
    expect([-0.5, 0, true, false, null].map(csvCell)).toEqual(['-0.5', '0', 'true', 'false', '']);
  });

  it('stands in records that end as RFC 4180 says', () => {
    expect(csvRecord(['a', null, '=b'])).toBe('a,,"\'=b"\r\n');
  });
});
