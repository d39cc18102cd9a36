import { z } from 'zod';
import type { OpenedToken, Presented } from '../../attest/ceremony.ts';
import type { StoredSummary } from '../../ingest/ports.ts';
import { DAY, MINUTE } from '../../lib/clock.ts';
import {
  decryptGcm,
  encryptGcm,
  GCM_IV_BYTES,
  hmacSha256,
  type Random,
  sha256,
  sha256Text,
} from '../../lib/crypto.ts';
import type { TransparencyView } from '../../schema/rights.ts';

/** Says how rare each signal of a visit is, for /me, and makes the token by which the browser asks. */

export type Band = 'common' | 'uncommon' | 'rare' | 'not enough data';

/**
 * Bits to use until the tenant's population is large enough, from Hiding in the Crowd (2018), the largest
 * study with the least selected visitors (signals.md section 5).
 */
const PRIOR_BITS: Readonly<Record<string, number>> = {
  canvas: 8.6,
  family: 1.2,
  fonts: 6.9,
  gpu: 5.5,
  screen: 4.9,
};

const COMMON_BITS = Math.log2(50);
const UNCOMMON_BITS = Math.log2(1000);

/** `common` is at least 1 in 50, `uncommon` at least 1 in 1,000, `rare` less. */
function bandOf(bits: number | undefined): Band {
  if (bits === undefined) return 'not enough data';
  if (bits <= COMMON_BITS) return 'common';
  return bits <= UNCOMMON_BITS ? 'uncommon' : 'rare';
}

const PURPOSE = 'device-identification';
const TIER = 'stable';
const round = (bits: number): number => Math.round(bits * 100) / 100;

/** Below the floor only bands are shown, and no total: a count of few people would identify them. */
export function transparencyView(
  summary: StoredSummary,
  facts: { readonly handle: string; readonly purposes: readonly string[]; readonly kAnonymityFloor: number },
): TransparencyView {
  const qualitativeOnly = summary.devices < facts.kAnonymityFloor;
  const signals = summary.signals.map(({ name, bits }) => {
    const measure = qualitativeOnly ? { band: bandOf(PRIOR_BITS[name]) } : { entropyBits: round(bits) };
    return { name, tier: TIER, ...measure, purpose: PURPOSE };
  });
  // The total is never a sum, because signals depend on each other (signals.md section 5).
  const totalEntropyBits = qualitativeOnly ? 0 : round(summary.jointBits);
  return { handle: facts.handle, signals, totalEntropyBits, purposes: [...facts.purposes], qualitativeOnly };
}

export const TOKEN_TTL_MS = 5 * MINUTE;
/** The longest possible lifetime, if the clock was ahead when the token was made. */
export const MAX_LIFE_MS = TOKEN_TTL_MS + MINUTE;
const DAY_BYTES = 4;
const HEAD_BYTES = DAY_BYTES + GCM_IV_BYTES;

export interface TokenBinding {
  /** The value of the gp_session cookie. */
  readonly session: string;
  readonly origin: string;
}

/** The request, and the principal if its consent was proven: a withdrawal counts while the token is valid. */
export type TokenSubject = Omit<OpenedToken, 'session'>;

const plaintextSchema = z.tuple([z.string(), z.string(), z.int(), z.string().optional()]);

/** The key of the day, derived once and used for all tokens of the day. */
let cachedKey: { readonly secret: Uint8Array; readonly day: number; readonly key: Buffer } | null = null;

function dayKey(serverSecret: Uint8Array, day: number): Buffer {
  if (cachedKey?.secret !== serverSecret || cachedKey.day !== day) {
    const key = hmacSha256(serverSecret, `gpd/transparency-token/v1 ${day}`);
    cachedKey = { secret: serverSecret, day, key };
  }
  return cachedKey.key;
}

function additionalData(binding: TokenBinding, day: number): Buffer {
  return sha256(JSON.stringify([sha256Text(binding.session), binding.origin, day]));
}

/**
 * Contract 3.5: AES-256-GCM, base64url, under a key of the day, bound to one session and one origin.
 * Plaintext: tenant, requestId, expiry, and the principal of a proven consent. It never carries a visitorId.
 */
export function issueToken(
  serverSecret: Uint8Array,
  random: Random,
  now: number,
  subject: TokenSubject,
  binding: TokenBinding,
): string {
  const day = Math.floor(now / DAY);
  const head = Buffer.alloc(DAY_BYTES);
  head.writeUInt32BE(day);
  const iv = random(GCM_IV_BYTES);
  const { kid, requestId, principalId } = subject;
  const fields = [kid, requestId, now + TOKEN_TTL_MS, ...(principalId === undefined ? [] : [principalId])];
  const plaintext = Buffer.from(JSON.stringify(fields));
  const ciphertext = encryptGcm(dayKey(serverSecret, day), iv, additionalData(binding, day), plaintext);
  return Buffer.concat([head, iv, ciphertext]).toString('base64url');
}

/** @returns null for every cause: malformed, expired, or of another session or origin */
export function openToken(serverSecret: Uint8Array, now: number, token: string, binding: TokenBinding) {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.toString('base64url') !== token || bytes.length <= HEAD_BYTES) return null;
  const day = bytes.readUInt32BE(0);
  const iv = bytes.subarray(DAY_BYTES, HEAD_BYTES);
  const ciphertext = bytes.subarray(HEAD_BYTES);
  const plaintext = decryptGcm(dayKey(serverSecret, day), iv, additionalData(binding, day), ciphertext);
  if (!plaintext) return null;
  try {
    const [kid, requestId, expiresAt, principalId] = plaintextSchema.parse(JSON.parse(plaintext.toString()));
    if (now >= expiresAt || expiresAt > now + MAX_LIFE_MS) return null;
    return principalId === undefined ? { kid, requestId } : { kid, requestId, principalId };
  } catch {
    return null;
  }
}

const MAX_TOKEN = 2048;
const MAX_SESSIONS = 4;

/** Opens a token with the sessions of the browser that presents it. @returns null for every cause */
export function openPresented(serverSecret: Uint8Array, now: number, { token, sessions, origin }: Presented) {
  if (typeof token !== 'string' || token.length > MAX_TOKEN || origin === undefined) return null;
  for (const session of sessions.slice(0, MAX_SESSIONS)) {
    const subject = openToken(serverSecret, now, token, { session, origin });
    if (subject) return { ...subject, session };
  }
  return null;
}
