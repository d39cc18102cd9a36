import { visibleText } from './plain-text.ts';

/** Files for spreadsheets: RFC 4180, and no cell is taken for a formula. */

export type Cell = string | number | boolean | null;

/**
 * Spreadsheets run a cell that begins so as a formula, the full-width forms in some locales too (CWE-1236). White space
 * in front does not stop all of them.
 */
const FORMULA = /^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/u;
/**
 * Where lists are separated by semicolons, as in most of Europe, a spreadsheet that opens the file takes them for the ends
 * of cells, and our quotes, which then stand inside of one, for text: so do line breaks and tabs. What may stand before a
 * formula is matched as a whole: a look from each separator to the formula would take the square of a long text.
 */
const BEFORE_FORMULA = /[;\s"][\s"]*/gu;
const STARTS_FORMULA = /^[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]/u;

function quoteInside(text: string): string {
  return text.replace(BEFORE_FORMULA, (gap: string, at: number) =>
    STARTS_FORMULA.test(text.charAt(at + gap.length)) ? gap.replace(/[;\t\n]/g, "$&'") : gap,
  );
}

/** Only text can be a formula; an apostrophe in front makes it text again. What cannot be seen is named. */
export function csvCell(value: Cell): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const seen = visibleText(value);
  const inside = quoteInside(seen);
  const text = FORMULA.test(seen) ? `'${inside}` : inside;
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One record with its CRLF (RFC 4180 section 2). */
export function csvRecord(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}
