/** An id of somebody else's making: what a database refuses (PostgreSQL takes no NUL) or a log could stumble over is none. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}
