import { expect, it } from 'vitest';
import { visibleText } from '../../src/lib/text.ts';

it.each([
  ['שלום, world\tand\nmore', 'שלום, world\tand\nmore'],
  ['\u202A\u202B\u202C\u202D\u202E', '[U+202A][U+202B][U+202C][U+202D][U+202E]'],
  ['\u2066\u2067\u2068\u2069', '[U+2066][U+2067][U+2068][U+2069]'],
  ['a\u061Cb\u200Ec\u200Fd', 'a[U+061C]b[U+200E]c[U+200F]d'],
  ['\u2028\u2029\uFEFF', '[U+2028][U+2029][U+FEFF]'],
  ['\u0000\u001B[31m\u007F\u0085', '[U+0000][U+001B][31m[U+007F][U+0085]'],
  ['👩‍💻', '👩[U+200D]💻'],
  ['\uDC00x', '\uFFFDx'],
])('%j is shown as %j', (text, shown) => {
  expect(visibleText(text)).toBe(shown);
});
