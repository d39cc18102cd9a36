/**
 * Makes texts of strangers safe to show: characters that control a
 * terminal, change the direction or are invisible are spelled out.
 */

/**
 * Directional marks, embeddings, overrides and isolates
 * (https://www.unicode.org/reports/tr9/), and invisible characters.
 */
const STEERING = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;
/** All control characters except line feed and tab. */
const CONTROL = /(?![\n\t])\p{Cc}/gu;

const codePointLabel = (char: string): string =>
  `\u27e8U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;

export function spellOutInvisible(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, '\n')
    .replace(CONTROL, codePointLabel)
    .replace(STEERING, codePointLabel);
}

/** Shortens to at most `length` characters, without splitting one. */
export function excerpt(text: string, length: number): string {
  const chars = Array.from(spellOutInvisible(text).replace(/\s+/g, ' ').trim());
  return chars.length <= length ? chars.join('') : `${chars.slice(0, length - 1).join('')}…`;
}
