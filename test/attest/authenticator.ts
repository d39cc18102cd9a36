import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/**
 * A software authenticator for ES256 without attestation, written
 * from WebAuthn and CTAP2, independent of the tested library.
 */

export interface Passkey {
  readonly id: Buffer;
  readonly privateKey: KeyObject;
  counter: number;
}

export interface CeremonyOptions {
  readonly origin: string;
  readonly rpId?: string;
  readonly challenge: string;
  /** Members that are added to the client data. */
  readonly over?: Readonly<Record<string, unknown>>;
  readonly flags?: number;
  /** True for a passkey that is synchronised between devices. */
  readonly synced?: boolean;
}

const UP = 0x01;
const UV = 0x04;
const BE = 0x08;
const BS = 0x10;
const AT = 0x40;

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest();
const b64 = (data: Buffer): string => data.toString('base64url');

/** Encodes a CBOR map (RFC 8949) from encoded keys and values. */
const cborMap = (...pairs: readonly (readonly [Buffer, Buffer])[]): Buffer =>
  Buffer.concat([Buffer.from([0xa0 + pairs.length]), ...pairs.flat()]);
const cborText = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x60 + text.length]), Buffer.from(text)]);
function cborBytes(bytes: Buffer): Buffer {
  const { length } = bytes;
  const head =
    length < 24 ? [0x40 + length] : length < 256 ? [0x58, length] : [0x59, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), bytes]);
}
const cborInt = (value: number): Buffer => Buffer.from([value >= 0 ? value : 0x20 - value - 1]);

export function createPasskey(counter = 0): Passkey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { id: randomBytes(32), privateKey, counter };
}

function cosePublicKey({ privateKey }: Passkey): Buffer {
  const { x = '', y = '' } = privateKey.export({ format: 'jwk' });
  return cborMap(
    [cborInt(1), cborInt(2)],
    [cborInt(3), cborInt(-7)],
    [cborInt(-1), cborInt(1)],
    [cborInt(-2), cborBytes(Buffer.from(x, 'base64url'))],
    [cborInt(-3), cborBytes(Buffer.from(y, 'base64url'))],
  );
}

function authenticatorData(
  key: Passkey,
  { origin, rpId, synced, flags }: CeremonyOptions,
  attested?: Buffer,
): Buffer {
  const counter = Buffer.alloc(4);
  counter.writeUInt32BE(key.counter);
  const flagBits = flags ?? UP | UV | (synced ? BE | BS : 0);
  return Buffer.concat([
    sha256(rpId ?? new URL(origin).hostname),
    Buffer.from([flagBits | (attested ? AT : 0)]),
    counter,
    attested ?? Buffer.alloc(0),
  ]);
}

function clientData(type: string, { origin, challenge, over }: CeremonyOptions): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false, ...over }));
}

function credentialOf<Response extends object>({ id }: Passkey, response: Response) {
  return { id: b64(id), rawId: b64(id), type: 'public-key', response };
}

/** Returns the result of `navigator.credentials.create` in the form that the agent sends. */
export function create(key: Passkey, options: CeremonyOptions, statement = cborMap(), fmt = 'none') {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(key.id.length);
  const attested = Buffer.concat([Buffer.alloc(16), length, key.id, cosePublicKey(key)]);
  const attestationObject = cborMap(
    [cborText('fmt'), cborText(fmt)],
    [cborText('attStmt'), statement],
    [cborText('authData'), cborBytes(authenticatorData(key, options, attested))],
  );
  return credentialOf(key, {
    clientDataJSON: b64(clientData('webauthn.create', options)),
    attestationObject: b64(attestationObject),
  });
}

/** An attestation statement with a certificate; the server must not fetch anything because of it. */
export const certified = (): Buffer =>
  cborMap(
    [cborText('alg'), cborInt(-7)],
    [cborText('sig'), cborBytes(Buffer.alloc(8))],
    [cborText('x5c'), Buffer.concat([Buffer.from([0x81]), cborBytes(Buffer.alloc(40))])],
  );

/** Returns the result of `navigator.credentials.get` in the form that the agent sends. */
export function get(key: Passkey, options: CeremonyOptions) {
  const data = clientData('webauthn.get', options);
  const authData = authenticatorData(key, options);
  const signature = sign('sha256', Buffer.concat([authData, sha256(data)]), key.privateKey);
  return credentialOf(key, {
    clientDataJSON: b64(data),
    authenticatorData: b64(authData),
    signature: b64(signature),
  });
}
