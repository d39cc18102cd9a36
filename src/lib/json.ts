import canonicalize from 'canonicalize';

/** JSON that two parsers cannot read differently. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** RFC 8785 (JCS) text of a JSON value. */
export function canonicalJson(value: Json): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

export class JsonRefused extends Error {
  override readonly name = 'JsonRefused';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Index of the quote that ends the string opened at `open`, or -1. */
function closingQuote(text: string, open: number): number {
  let end = text.indexOf('"', open + 1);
  while (end !== -1) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return -1;
}

/**
 * Walks the structure without building it. `text` need not be valid JSON: JSON.parse checks that afterwards.
 */
function scan(text: string, maxDepth: number): void {
  const keys = new Set<string>();
  let depth = 0;
  let expectKey = false;
  let isObject = false;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = closingQuote(text, i);
      if (end === -1) throw new JsonRefused('unterminated string');
      if (depth === 1 && expectKey) {
        const rawKey = text.slice(i + 1, end);
        const key = rawKey.includes('\\') ? (JSON.parse(`"${rawKey}"`) as string) : rawKey;
        if (keys.has(key)) throw new JsonRefused('duplicate key');
        keys.add(key);
        expectKey = false;
      }
      i = end;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > maxDepth) throw new JsonRefused('nested too deeply');
      if (depth === 1) {
        isObject = code === 0x7b;
        expectKey = isObject;
      }
    } else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
    } else if (code === 0x2c && depth === 1) {
      expectKey = isObject;
    }
  }
}

/**
 * Like JSON.parse, but it refuses duplicate keys in the top-level object and nesting deeper than `maxDepth`.
 * A check can be bypassed if two parsers disagree about a duplicate key (RFC 8259 section 4).
 * @param maxDepth nesting of arrays and objects, checked before JSON.parse sees the text
 * @throws {JsonRefused} for any text that is not acceptable JSON, with one reason and no part of the input
 */
export function parseStrictJson(text: string, maxDepth = 32): unknown {
  try {
    scan(text, maxDepth);
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof JsonRefused) throw error;
    throw new JsonRefused('not valid JSON');
  }
}
