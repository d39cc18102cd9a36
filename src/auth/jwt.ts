import { z } from 'zod';
import { decodeBase64Url } from '../lib/base64.ts';
import { JsonRefused, parseStrictJson } from '../lib/strict-json.ts';
import { SIGNING_ALGORITHMS } from './jwks.ts';

/** A compact JWS (RFC 7515) read as strictly as anything can write it. Nothing of it is believed yet. */

export type Claims = Readonly<Record<string, unknown>>;

export interface ReadJws {
  readonly kid: string | null;
  readonly payload: Buffer;
}

/** A token that is larger is no token of ours; a request's headers have at most 16 KB. */
export const MAX_TOKEN_LENGTH = 8192;

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const TYPES = new Set(['jwt', 'at+jwt']);
/** Keys or addresses of keys that the sender picks, extensions that have to be understood, a payload that is not encoded. */
const FORBIDDEN_MEMBERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'enc', 'zip'];

const headerSchema = z.looseObject({
  alg: z.string(),
  kid: z.string().max(1024).optional(),
  typ: z
    .string()
    .transform((typ) => typ.toLowerCase().replace(/^application\//, ''))
    .refine((typ) => TYPES.has(typ))
    .optional(),
});

/** One JSON object without double keys, or null. */
export function readClaims(bytes: Buffer): Claims | null {
  try {
    const value = parseStrictJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Claims) : null;
  } catch (error) {
    if (error instanceof JsonRefused || error instanceof TypeError) return null;
    throw error;
  }
}

export type Unreadable = 'malformed' | 'header' | 'algorithm';

/**
 * Exactly three canonical base64url parts (RFC 7515 section 2: no padding, no white space; no bits left over) and a header
 * with nothing in it that would change how the rest is read.
 */
export function readJws(token: string): ReadJws | Unreadable {
  if (token.length > MAX_TOKEN_LENGTH || !COMPACT.test(token)) return 'malformed';
  const [head, payload, signature] = token.split('.').map((part) => decodeBase64Url(part));
  const header = head ? readClaims(head) : null;
  if (!header || !payload || !signature) return 'malformed';
  const known = headerSchema.safeParse(header);
  if (!known.success || FORBIDDEN_MEMBERS.some((name) => Object.hasOwn(header, name))) return 'header';
  const { alg, kid = null } = known.data;
  return (SIGNING_ALGORITHMS as readonly string[]).includes(alg) ? { kid, payload } : 'algorithm';
}
