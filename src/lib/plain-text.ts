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
