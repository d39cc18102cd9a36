import { z } from 'zod';
import type { IssueToken } from '../ingest/ingest.ts';
import { MINUTE } from '../lib/clock.ts';
import { equalBytes, hmacSha256, type Random, sha256Text } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';

/**
 * Verifies a browser's answer with @simplewebauthn/server, which is loaded for the first answer. Null if the
 * answer proves nothing.
 */

const MAX_TEXT = 24_000;
/** 1,023 bytes (WebAuthn section 4). */
const MAX_ID = 1364;
const base64Url = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[A-Za-z0-9_-]+$/);

const credentialSchema = z.object({
  id: base64Url(MAX_ID),
  rawId: base64Url(MAX_ID),
  type: z.literal('public-key'),
  response: z.union([
    z.object({ clientDataJSON: base64Url(MAX_TEXT), attestationObject: base64Url(MAX_TEXT) }),
    z.object({
      clientDataJSON: base64Url(MAX_TEXT),
      authenticatorData: base64Url(MAX_TEXT),
      signature: base64Url(MAX_TEXT),
    }),
  ]),
});

const clientDataSchema = z.object({ challenge: z.string(), crossOrigin: z.literal(false).optional() });

export type Presentation = NonNullable<ReturnType<typeof readCredential>>;

/** Reads the parts of a credential, and the challenge that it claims to answer. */
export function readCredential(value: unknown) {
  const { data } = credentialSchema.safeParse(value);
  if (!data) return null;
  const { response } = data;
  const text = Buffer.from(response.clientDataJSON, 'base64url').toString();
  const challenge = clientDataSchema.safeParse(tryOr((): unknown => JSON.parse(text), null)).data?.challenge;
  if (challenge === undefined) return null;
  const whole = { ...data, clientExtensionResults: {} };
  return 'attestationObject' in response
    ? ({ ceremony: 'create', challenge, credential: { ...whole, response } } as const)
    : ({ ceremony: 'get', challenge, credential: { ...whole, response } } as const);
}

type Given<C extends Presentation['ceremony']> = Extract<Presentation, { ceremony: C }>['credential'];

type Expected = Readonly<Record<'challenge' | 'origin' | 'rpId', string>> & {
  /** True to require a PIN or biometrics, not only a touch. */
  readonly verifiesUser?: boolean;
};

const expecting = ({ challenge, origin, rpId, verifiesUser = false }: Expected) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: rpId,
  requireUserVerification: verifiesUser,
});

/**
 * True without attestation or with self-attestation: a certificate could make the library fetch addresses.
 */
async function isSelfMade(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')));
  const fmt = decoded.get('fmt');
  return fmt === 'none' || (fmt === 'packed' && decoded.get('attStmt').get('x5c') === undefined);
}

export async function verifyCreated(credential: Given<'create'>, expected: Expected) {
  try {
    if (!(await isSelfMade(credential.response.attestationObject))) return null;
    const { verifyRegistrationResponse } = await import('@simplewebauthn/server');
    const { registrationInfo } = await verifyRegistrationResponse({
      response: credential,
      ...expecting(expected),
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (!registrationInfo || registrationInfo.credential.id !== credential.id) return null;
    const { publicKey, counter } = registrationInfo.credential;
    return {
      publicKey: Buffer.from(publicKey).toString('base64url'),
      counter,
      deviceBound: registrationInfo.credentialDeviceType === 'singleDevice',
    };
  } catch {
    return null;
  }
}

const COSE_EC2 = 2;
const DER_SEQUENCE = 0x30;

/**
 * Requires the exact encoding (for P-256, short DER), because the library ignores bytes after the end of a
 * signature.
 */
function isExact(signature: string, publicKey: Uint8Array): boolean {
  const bytes = Buffer.from(signature, 'base64url');
  // The first pair of a canonical COSE key is its type.
  if (publicKey[2] !== COSE_EC2) return true;
  return bytes[0] === DER_SEQUENCE && bytes[1] === bytes.length - 2;
}

/** @returns the counter that the authenticator signed */
export async function verifyUsed(
  credential: Given<'get'>,
  publicKeyText: string,
  expected: Expected,
): Promise<number | null> {
  const publicKey = new Uint8Array(Buffer.from(publicKeyText, 'base64url'));
  if (!isExact(credential.response.signature, publicKey)) return null;
  try {
    const { verifyAuthenticationResponse } = await import('@simplewebauthn/server');
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: credential,
      ...expecting(expected),
      // The caller compares the counter.
      credential: { id: credential.id, publicKey, counter: 0 },
    });
    return verified ? authenticationInfo.newCounter : null;
  } catch {
    return null;
  }
}

/** A counter that does not rise is that of a copy (WebAuthn section 6.1.1), except one that stays at 0. */
export const isCloned = (stored: number, signed: number): boolean =>
  (stored > 0 || signed > 0) && signed <= stored;

const CHALLENGE_TTL_MS = 5 * MINUTE;
const RANDOM_BYTES = 16;
const TIME_BYTES = 6;
const MAC_BYTES = 32;
const HEAD_BYTES = TIME_BYTES + RANDOM_BYTES;

export type Ceremony = 'create' | 'get';
/** The key that every challenge is MACed with. */
export const challengeKeyOf = (deps: { readonly serverSecret: Uint8Array }): Buffer =>
  hmacSha256(deps.serverSecret, 'gpd/attest-challenge/v1');

/** A binding to the token is enough, because the token is bound to its request, session and origin. */
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

/**
 * A challenge needs no row: its MAC covers its purpose, so that any node recognises it. The transaction that
 * writes the decision claims its nonce, so that it is used once.
 */
export function createChallenge(key: Uint8Array, random: Random, now: number, binding: ChallengeBinding) {
  const head = Buffer.alloc(TIME_BYTES);
  head.writeUIntBE(now + CHALLENGE_TTL_MS, 0, TIME_BYTES);
  const whole = Buffer.concat([head, random(RANDOM_BYTES)]);
  return Buffer.concat([whole, macOf(key, whole, binding)]).toString('base64url');
}

/**
 * @returns when it was made and when it expires; null for a challenge that expired or was made for something
 * else
 */
export function readChallenge(key: Uint8Array, now: number, challenge: string, binding: ChallengeBinding) {
  const bytes = Buffer.from(challenge, 'base64url');
  if (bytes.length !== HEAD_BYTES + MAC_BYTES || bytes.toString('base64url') !== challenge) return null;
  const head = bytes.subarray(0, HEAD_BYTES);
  if (!equalBytes(bytes.subarray(HEAD_BYTES), macOf(key, head, binding))) return null;
  const expiresAt = head.readUIntBE(0, TIME_BYTES);
  const isLive = now < expiresAt && expiresAt <= now + CHALLENGE_TTL_MS + MINUTE;
  return isLive ? { madeAt: expiresAt - CHALLENGE_TTL_MS, expiresAt } : null;
}

const TIMEOUT_MS = 120_000;
const ES256 = -7;
const ED25519 = -8;
const RS256 = -257;
const ALGORITHMS = [ES256, ED25519, RS256];

/**
 * The options for the browser (WebAuthn JSON): a discoverable credential, no attestation. `userId` is random
 * for each passkey and identifies no person.
 */
export function publicKeyOf(
  ceremony: Ceremony,
  { rpId, challenge, userId }: Readonly<Record<'rpId' | 'challenge' | 'userId', string>>,
  userVerification: 'preferred' | 'required' = 'preferred',
): Record<string, unknown> {
  const both = { challenge, timeout: TIMEOUT_MS };
  if (ceremony === 'get') return { ...both, rpId, allowCredentials: [], userVerification };
  return {
    ...both,
    rp: { id: rpId, name: rpId },
    user: { id: userId, name: rpId, displayName: rpId },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: [],
    attestation: 'none',
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification,
    },
  };
}

/** Browsers refuse passkeys for an IP address. Setup, `gpd staff invite` and the sign-in use this text. */
export const NEEDS_NAME = 'browsers make passkeys for a name such as localhost, not for an address of digits';

/**
 * The host of the page, or the tenant's `attest.rpId` where that is a parent of it. Null for an address: a
 * relying party is a domain (WebAuthn section 5.1.3). The browser checks that it is registrable, because it
 * has the list.
 */
export function relyingPartyOf(origin: string, setting: string): string | null {
  const host = parseUrl(origin)?.hostname ?? '';
  // In a URL, a host of digits and dots is an IPv4 address.
  if (host === '' || host.startsWith('[') || /^[\d.]+$/.test(host)) return null;
  return setting !== '' && host.endsWith(`.${setting}`) ? setting : host;
}

/** A transparency token as it was presented. */
export interface Presented {
  readonly token: unknown;
  /** Values of the gp_session cookie: a sibling host may have added one. */
  readonly sessions: readonly string[];
  readonly origin: string | undefined;
}

/** The request and the session that the token was issued for. */
export type OpenedToken = Omit<Parameters<IssueToken>[0], 'origin' | 'now'>;

/** A ceremony that failed, with its outcome. */
export class Failed extends Error {
  override readonly name = 'Failed';
  readonly outcome: CeremonyOutcome;

  constructor(outcome: CeremonyOutcome) {
    super(outcome);
    this.outcome = outcome;
  }
}

/** The result of a ceremony; the client gets one refusal for all but the first two. */
export const OUTCOMES = [
  'created',
  'used',
  'malformed',
  'challenge',
  'signature',
  'unknown',
  'cloned',
  'replay',
] as const;
export type CeremonyOutcome = (typeof OUTCOMES)[number];
