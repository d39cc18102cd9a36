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
