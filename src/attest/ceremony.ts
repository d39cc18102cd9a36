import { z } from 'zod';
import { orElse } from '../lib/or-else.ts';
import { ALGORITHMS } from './publickey.ts';

/** What a browser's answer proves, by @simplewebauthn/server, which is loaded by the first of them. Null: nothing. */

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

/** Its parts, and the challenge that it says it answers. */
export function readCredential(given: unknown) {
  const { data } = credentialSchema.safeParse(given);
  if (!data) return null;
  const { response } = data;
  const text = Buffer.from(response.clientDataJSON, 'base64url').toString();
  const challenge = clientDataSchema.safeParse(orElse((): unknown => JSON.parse(text), null)).data?.challenge;
  if (challenge === undefined) return null;
  const whole = { ...data, clientExtensionResults: {} };
  return 'attestationObject' in response
    ? ({ ceremony: 'create', challenge, credential: { ...whole, response } } as const)
    : ({ ceremony: 'get', challenge, credential: { ...whole, response } } as const);
}

type Given<C extends Presentation['ceremony']> = Extract<Presentation, { ceremony: C }>['credential'];

type Expected = Readonly<Record<'challenge' | 'origin' | 'rpId', string>>;

const expecting = ({ challenge, origin, rpId }: Expected) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: rpId,
  requireUserVerification: false,
});

/** No attestation, or the credential's own: a certificate could make the library fetch what it names. */
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

/** The library reads past what follows a signature's end: one signature, one spelling (of P-256, short DER). */
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

/** A counter that does not rise is a copy's (WebAuthn section 6.1.1); one that stays at 0 counts nothing. */
export const isCloned = (stored: number, signed: number): boolean =>
  (stored > 0 || signed > 0) && signed <= stored;
