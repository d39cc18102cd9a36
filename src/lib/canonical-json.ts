import canonicalize from 'canonicalize';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** RFC 8785 (JCS) text of a JSON value. */
export function canonicalJson(value: Json): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}
