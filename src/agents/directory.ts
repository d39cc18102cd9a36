import { createPublicKey, type KeyObject } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { z } from 'zod';
import { decodeBase64Url } from '../lib/crypto.ts';
import { parseUrl } from '../lib/text.ts';

/** Reads an agent's key set (RFC 7517), and names the agent by its URL (ADR 0108). */

export const WELL_KNOWN_PATH = '/.well-known/http-message-signatures-directory';
export const MAX_KEYS = 32;

/** The key of RFC 9421 B.1.4: the RFC prints its private half, so a signature with it proves nothing. */
export const RFC_TEST_KEY = 'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U';

const ed25519JwkSchema = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  // Each key has one spelling: another one has another thumbprint, and would pass for another key.
  x: z.string().refine((x) => decodeBase64Url(x)?.length === 32),
  // A directory that prints the private half makes its signatures worthless.
  d: z.undefined().optional(),
  nbf: z.number().optional(),
  exp: z.number().optional(),
});

/**
 * RFC 7519 section 2: a NumericDate is in seconds. Some agents publish milliseconds; in seconds this is the
 * year 5138.
 */
const LATEST_SECONDS = 1e11;

const isMilliseconds = (date: number | undefined): date is number =>
  date !== undefined && date > LATEST_SECONDS;
const inSeconds = (date: number | undefined) => (isMilliseconds(date) ? date / 1000 : date);

/** A JWK Set (RFC 7517 section 5), or one bare JWK, which some agents serve in its place. */
const documentSchema = z.union([
  z.object({ keys: z.array(z.unknown()).max(MAX_KEYS) }),
  z
    .object({ kty: z.string(), keys: z.undefined().optional() })
    .loose()
    .transform((key) => ({ keys: [key] })),
]);

export interface AgentKey {
  /** RFC 7638 thumbprint, computed here: a directory's own `kid` is never believed. */
  readonly thumbprint: string;
  /** The 32-byte public key as base64url. */
  readonly x: string;
  /** The directory's numbers in its unit: {@link validityOf} converts them to seconds. */
  readonly nbf?: number | undefined;
  readonly exp?: number | undefined;
}

/** Keys whose `nbf` or `exp` the directory gives in milliseconds. */
export const countMilliseconds = (keys: readonly AgentKey[]): number =>
  keys.filter(({ nbf, exp }) => isMilliseconds(nbf) || isMilliseconds(exp)).length;

/** In seconds, whatever unit the directory uses. */
export function validityOf({ nbf, exp }: AgentKey): { readonly nbf: number; readonly exp: number } {
  return { nbf: inSeconds(nbf) ?? 0, exp: inSeconds(exp) ?? Number.POSITIVE_INFINITY };
}

/**
 * The https address of an agent's key set, without query and fragment; an origin alone means its well-known
 * address. Null: an address that is never fetched.
 */
export function directoryUrl(text: string): string | null {
  const url = text.length > 512 ? null : parseUrl(text);
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return null;
  url.search = '';
  url.hash = '';
  if (url.pathname === '/') url.pathname = WELL_KNOWN_PATH;
  return url.href;
}

/**
 * `declaredAgentId`, stable over key rotation: the URL of the key set. The well-known address belongs to
 * the host's operator, so there it is the origin; any other path does not name the operator of its host.
 */
export function agentIdentity(directory: string): string {
  const { origin, pathname } = new URL(directory);
  return pathname === WELL_KNOWN_PATH ? origin : directory;
}

/**
 * The Ed25519 keys of a directory; other kinds are skipped. Null: neither a JWKS nor a JWK, or too many keys.
 */
export async function readJwks(document: unknown, refused: ReadonlySet<string> = new Set([RFC_TEST_KEY])) {
  const parsed = documentSchema.safeParse(document);
  if (!parsed.success) return null;
  const keys: AgentKey[] = [];
  for (const candidate of parsed.data.keys) {
    const jwk = ed25519JwkSchema.safeParse(candidate);
    if (!jwk.success) continue;
    const { kty, crv, x, nbf, exp } = jwk.data;
    const thumbprint = await calculateJwkThumbprint({ kty, crv, x });
    if (!refused.has(thumbprint)) keys.push({ thumbprint, x, nbf, exp });
  }
  return keys;
}

/** @throws {Error} when OpenSSL refuses the point */
export function importAgentKey(key: AgentKey): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: key.x }, format: 'jwk' });
}
