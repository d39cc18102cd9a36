/** Text of strangers as it can be shown: what steers a terminal, a page's direction or a reader's eye becomes visible. */

/** Explicit directional marks, embeddings, overrides and isolates (Unicode TR 9), and what is invisible. */
const STEERING = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g;
/** All of them but line feed and tab. */
const CONTROL = /(?![\n\t])\p{Cc}/gu;

const hex = (char: string): string =>
  `\u27e8U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;

export function visible(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, '\n').replace(CONTROL, hex).replace(STEERING, hex);
}

/** The beginning, cut between characters. */
export function excerpt(text: string, length: number): string {
  const chars = Array.from(visible(text).replace(/\s+/g, ' ').trim());
  return chars.length <= length ? chars.join('') : `${chars.slice(0, length - 1).join('')}…`;
}
