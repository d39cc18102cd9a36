import { describe, expect, it } from 'vitest';
import { csvCell, csvRecord, parseUrl, visibleText } from '../../src/lib/text.ts';

describe('a cell of a CSV', () => {
  it.each([
    ['plain', 'plain'],
    ['', ''],
    ['a,b', '"a,b"'],
    ['say "so"', '"say ""so"""'],
    ['two\r\nlines', '"two\nlines"'],
    // A carriage return alone ends a line for some readers.
    ['a\rb', 'a[U+000D]b'],
    ['1-2', '1-2'],
  ])('%j is %j', (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  it.each([
    ...['=1+1', '+1', '-1', '@SUM(A1)', '  =1', '\u00A0=1', '\u3000+1', '＝1', '＋1', '－1', '＠A', '\tcalc'],
    ...['=HYPERLINK("http://evil.example/","x")', "=cmd|' /C calc'!A0"],
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
    // Read so, a cell of its own in quotes.
    ['x;"=1+1";', '"x;\'""=1+1"";"'],
    ['one; two, -three', '"one; two, -three"'],
  ])('%j is no formula where a semicolon ends a cell', (text, cell) => {
    expect(csvCell(text)).toBe(cell);
    // Our quotes end up in the middle of the first cell of such a spreadsheet.
    const cells = `req_1,${cell}`.split(/[;\t\n]/).map((each) => each.replaceAll('"', '').trim());
    expect(cells.filter((each) => /^[=+\-@＝]/u.test(each))).toEqual([]);
  });

  it('cannot hide or reverse its content, and a hidden character in front saves no formula', () => {
    expect(csvCell('\u202Egpj.exe\u2066\u200B\u0000')).toBe('[U+202E]gpj.exe[U+2066][U+200B][U+0000]');
    expect(csvCell('\uD800')).toBe('\uFFFD');
    expect(csvCell('\u202E=1')).toBe('[U+202E]=1');
  });

  it('stands in records that end as RFC 4180 says; numbers and truth stay as they are', () => {
    expect(csvRecord(['a', null, '=b', -0.5, true])).toBe('a,,"\'=b",-0.5,true\r\n');
  });
});

it.each([
  ['שלום, world\tand\nmore', 'שלום, world\tand\nmore'],
  ['\u202A\u202E\u2066\u2069', '[U+202A][U+202E][U+2066][U+2069]'],
  ['a\u061Cb\u200Ec\u200Fd', 'a[U+061C]b[U+200E]c[U+200F]d'],
  ['\u2028\u2029\uFEFF', '[U+2028][U+2029][U+FEFF]'],
  ['\u0000\u001B[31m\u007F\u0085', '[U+0000][U+001B][31m[U+007F][U+0085]'],
  ['👩‍💻', '👩[U+200D]💻'],
  ['\uDC00x', '\uFFFDx'],
])('%j is shown as %j', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

it('parseUrl reads a name beyond ASCII however often it was asked before', () => {
  // Node 20's own URL.canParse refuses it from the moment that its caller is compiled.
  for (let i = 0; i < 100_000; i += 1) parseUrl(`https://agent.example/${i % 7}`);
  expect(parseUrl('https://b\u00fccher.example')?.host).toBe('xn--bcher-kva.example');
  expect(parseUrl('https://')).toBeNull();
});
