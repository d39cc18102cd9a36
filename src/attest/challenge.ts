import { MINUTE } from '../lib/clock.ts';
import { equalBytes, hmacSha256, sha256Text } from '../lib/hash.ts';
import type { Random } from '../lib/random.ts';

/**
 * A challenge is its own record: what it was made for is under its MAC, so that any node knows it again. That it is used once
 * is a nonce's claim, in the transaction that writes the decision.
 */

const CHALLENGE_TTL_MS = 5 * MINUTE;
const RANDOM_BYTES = 16;
const TIME_BYTES = 6;
const MAC_BYTES = 32;
const HEAD_BYTES = TIME_BYTES + RANDOM_BYTES;

export type Ceremony = 'create' | 'get';
/** The key that every challenge is MACed with. */
export const challengeKeyOf = (deps: { readonly serverSecret: Uint8Array }): Buffer =>
  hmacSha256(deps.serverSecret, 'gpd/attest-challenge/v1');

/** The token is bound to its request, session and origin: so is what is bound to the token. */
export interface ChallengeBinding {
  readonly token: string;
  readonly kid: string;
  readonly ceremony: Ceremony;
  readonly rpId: string;
}

function macOf(key: Uint8Array, head: Uint8Array, { token, kid, ceremony, rpId }: ChallengeBinding): Buffer {
  const bound = [sha256Text(token), kid, ceremony, rpId, Buffer.from(head).toString('base64url')];
  return hmacSha256(key, JSON.stringify(bound));
}

export function makeChallenge(key: Uint8Array, random: Random, now: number, binding: ChallengeBinding) {
  const head = Buffer.alloc(TIME_BYTES);
  head.writeUIntBE(now + CHALLENGE_TTL_MS, 0, TIME_BYTES);
  const whole = Buffer.concat([head, random(RANDOM_BYTES)]);
  return Buffer.concat([whole, macOf(key, whole, binding)]).toString('base64url');
}

/** When it was made; null for a challenge that was not made for this, or is over. */
export function readChallenge(key: Uint8Array, now: number, challenge: string, binding: ChallengeBinding) {
  const bytes = Buffer.from(challenge, 'base64url');
  if (bytes.length !== HEAD_BYTES + MAC_BYTES || bytes.toString('base64url') !== challenge) return null;
  const head = bytes.subarray(0, HEAD_BYTES);
  if (!equalBytes(bytes.subarray(HEAD_BYTES), macOf(key, head, binding))) return null;
  const expiresAt = head.readUIntBE(0, TIME_BYTES);
  const isLive = now < expiresAt && expiresAt <= now + CHALLENGE_TTL_MS + MINUTE;
  return isLive ? expiresAt - CHALLENGE_TTL_MS : null;
}
