/**
 * Null: no URL. Not by `URL.canParse`: once V8 has compiled its caller, Node 20 refuses every text with a Latin-1 character
 * beyond ASCII (`https://bücher.example`).
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
