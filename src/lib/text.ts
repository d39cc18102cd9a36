import { tryOr } from './errors.ts';

/** Checks an id from outside: PostgreSQL refuses NUL, and other control characters disturb logs. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Control, bidi and line-separating characters end a line or change a terminal or the reading order. */
const STEERING = /[\p{Cc}\p{Bidi_C}\u2028\u2029]/u;

/** Checks a title or name that is shown on one line. */
export function isOneLine(text: string): boolean {
  return text.isWellFormed() && !STEERING.test(text);
}

/**
 * Invisible characters that change how text is read: bidirectional controls (Unicode Standard Annex 9),
 * zero-width ones, and control characters except line feed and tab.
 */
const UNSEEN = /(?![\n\t])[\p{Cc}\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u206F\uFEFF]/gu;

/**
 * Text from a person, made safe to read: invisible characters are shown as their code, lone surrogates are
 * replaced.
 */
export function visibleText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll('\r\n', '\n')
    .replace(
      UNSEEN,
      (char) => `[U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}

/** Shortens to at most `length` characters, without splitting one. */
export function excerpt(text: string, length: number): string {
  const chars = Array.from(visibleText(text).replace(/\s+/g, ' ').trim());
  return chars.length <= length ? chars.join('') : `${chars.slice(0, length - 1).join('')}…`;
}

/** Writes files for spreadsheets (RFC 4180) in which no cell can be taken for a formula. */

export type Cell = string | number | boolean | null;

/**
 * A cell that begins like this runs as a formula, in some locales with full-width forms too (CWE-1236). White
 * space in front does not stop every spreadsheet.
 */
const FORMULA = /^\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/u;
/**
 * In a file where lists use semicolons, as in most of Europe, a spreadsheet takes them, line breaks and tabs
 * for the ends of cells, and gpd's quotes for text (CWE-1236). The gap before a formula is matched as a
 * whole: looking ahead from each separator would take quadratic time on long text.
 */
const BEFORE_FORMULA = /[;\s"][\s"]*/gu;
const STARTS_FORMULA = /^[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]/u;

function quoteInside(text: string): string {
  return text.replace(BEFORE_FORMULA, (gap: string, at: number) =>
    STARTS_FORMULA.test(text.charAt(at + gap.length)) ? gap.replace(/[;\t\n]/g, "$&'") : gap,
  );
}

/**
 * Only text can be a formula; an apostrophe in front makes it text again. Invisible characters are shown as
 * their code.
 */
export function csvCell(value: Cell): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const visible = visibleText(value);
  const inside = quoteInside(visible);
  const text = FORMULA.test(visible) ? `'${inside}` : inside;
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One record with its CRLF (RFC 4180 section 2). */
export function csvRecord(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

/**
 * Null: not a URL. `URL.canParse` is not used: on Node 20, once V8 has compiled its caller, it refuses text
 * with a Latin-1 character beyond ASCII (`https://bücher.example`).
 */
export const parseUrl = (text: string): URL | null => tryOr(() => new URL(text), null);
