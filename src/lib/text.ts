import { orElse } from './functions.ts';

/** An id that someone else made: what a database refuses (PostgreSQL takes no NUL) or a log could stumble over is invalid. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** What ends a line, or steers a terminal or the order of what is read: control, bidi and line-separating characters. */
const STEERING = /[\p{Cc}\p{Bidi_C}\u2028\u2029]/u;

/** A title or a name that is shown on one line. */
export function isOneLine(text: string): boolean {
  return text.isWellFormed() && !STEERING.test(text);
}

/**
 * Characters that change how the text around them is read and are not seen themselves: bidirectional controls
 * (Unicode Standard Annex 9), zero-width ones and control characters but the line feed and the tab.
 */
const UNSEEN = /(?![\n\t])[\p{Cc}\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u206F\uFEFF]/gu;

/** Text of a person's own as a reader may trust it: what cannot be seen is named, a lone surrogate is replaced. */
export function visibleText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll('\r\n', '\n')
    .replace(
      UNSEEN,
      (char) => `[U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}

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

/**
 * Null: no URL. Not by `URL.canParse`: once V8 has compiled its caller, Node 20 refuses every text with a Latin-1 character
 * beyond ASCII (`https://bücher.example`).
 */
export const parseUrl = (text: string): URL | null => orElse(() => new URL(text), null);
