import { isRecord, parseJson } from './body.ts';

/** The cookie `gpd_consent`: a compact JWS of gpd about a visitor's choices (SPEC.md section 10). Signatures are checked in state-keys.ts. */

export const STATE_COOKIE = 'gpd_consent';
const MAX_STATE_LENGTH = 4096;
const MAX_AGE_SECONDS = 300;
/** The tolerated difference between the clocks of gpd and this machine. */
const MAX_SKEW_SECONDS = 60;
/** 400 days, as the banner has it: the cookie of a visitor who comes back after a month is renewed. */
const COOKIE_SECONDS = 34_560_000;
/** The order n of P-256: both halves of a signature are 1 to n-1. Some libraries once accepted zero. */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

export interface SignedState {
  /** The whole JWS. */
  readonly text: string;
  /** Id of the key that signed it. */
  readonly keyId: string;
  readonly message: Uint8Array<ArrayBuffer>;
  /** 64 bytes: r and s. */
  readonly signature: Uint8Array<ArrayBuffer>;
  readonly tenant: string;
  /** gpd's reference of the person, not the principal id. */
  readonly subject: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly purposes: readonly string[];
  readonly seq: number;
}

/** Null unless the header has exactly one such cookie: nobody can say which of two is the newer one. */
export function readCookie(header: string | null | undefined): string | null {
  if (typeof header !== 'string') return null;
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${STATE_COOKIE}=`))
    .map((pair) => pair.slice(STATE_COOKIE.length + 1));
  return values.length === 1 ? (values[0] ?? null) : null;
}

function decodePart(part: string): Uint8Array<ArrayBuffer> | null {
  const bytes = Buffer.from(part, 'base64url');
  return bytes.toString('base64url') === part ? new Uint8Array(bytes) : null;
}

function parsePart(part: string): unknown {
  const bytes = decodePart(part);
  return bytes && parseJson(Buffer.from(bytes).toString());
}

/** 9999-12-31T23:59:59Z, after which not every language can write the time. */
const MAX_SECONDS = 253_402_300_799;

const isInteger = (value: unknown, max: number): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
const isSeconds = (value: unknown): value is number => isInteger(value, MAX_SECONDS);
const isSeq = (value: unknown): value is number => isInteger(value, Number.MAX_SAFE_INTEGER);

function isSignature(bytes: Uint8Array): boolean {
  const halves = [bytes.subarray(0, 32), bytes.subarray(32)];
  return (
    bytes.length === 64 &&
    halves
      .map((half) => BigInt(`0x${Buffer.from(half).toString('hex')}`))
      .every((n) => n > 0n && n < P256_ORDER)
  );
}

/** Null for a malformed state or another algorithm. The signature is not verified yet. */
export function parseState(text: string): SignedState | null {
  const parts = text.length <= MAX_STATE_LENGTH ? text.split('.') : [];
  const [head = '', payload = '', tail = ''] = parts;
  const header = parsePart(head);
  const claims = parsePart(payload);
  const signature = decodePart(tail);
  if (parts.length !== 3 || !isRecord(header) || !isRecord(claims) || !signature) return null;
  const { alg, typ, kid: keyId, crit } = header;
  if (alg !== 'ES256' || typ !== 'JWT' || typeof keyId !== 'string' || crit !== undefined) return null;
  const { kid: tenant, sub: subject, iat: issuedAt, exp: expiresAt, p: purposes, seq } = claims;
  if (
    typeof tenant !== 'string' ||
    typeof subject !== 'string' ||
    !isSeconds(issuedAt) ||
    !isSeconds(expiresAt)
  )
    return null;
  if (!Array.isArray(purposes) || !purposes.every((id) => typeof id === 'string') || !isSeq(seq)) return null;
  if (!isSignature(signature)) return null;
  const message = new TextEncoder().encode(`${head}.${payload}`);
  const claimed = { tenant, subject, issuedAt, expiresAt, purposes: purposes as string[], seq };
  return { text, keyId, message, signature, ...claimed };
}

/** True for a state that cannot be gpd's, because it was signed in the future. */
export const isEarly = ({ issuedAt }: SignedState, now: number): boolean =>
  issuedAt * 1000 > now + MAX_SKEW_SECONDS * 1000;

/** A state counts for five minutes, whatever it says itself. @param now milliseconds since the epoch */
export const isFresh = ({ issuedAt, expiresAt }: SignedState, now: number): boolean =>
  now < Math.min(expiresAt, issuedAt + MAX_AGE_SECONDS) * 1000;

/** Readable by scripts, because the banner has to end it the moment that somebody refuses. */
export function setCookieOf(state: string | null, domain: string | undefined): string {
  const age = state === null ? 0 : COOKIE_SECONDS;
  const scope = domain === undefined ? '' : `; Domain=${domain}`;
  return `${STATE_COOKIE}=${state ?? ''}; Path=/; Max-Age=${age}; SameSite=Lax; Secure${scope}`;
}
