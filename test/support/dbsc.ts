import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { ask, type Reply } from './http.ts';

/** A browser with Device Bound Session Credentials, played: written from the draft, with a key of its own and Node's crypto. */

export interface DeviceKey {
  readonly privateKey: KeyObject;
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string; readonly y: string };
}

const b64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export function makeDeviceKey(namedCurve: 'P-256' | 'P-384' = 'P-256'): DeviceKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
  const { kty = '', crv = '', x = '', y = '' } = publicKey.export({ format: 'jwk' });
  return { privateKey, jwk: { kty, crv, x, y } };
}

export interface ProofOptions {
  readonly head?: object;
  readonly claims?: object;
  readonly hash?: string;
}

/** A DBSC proof; `registering` puts the public key into its header. */
export function proofOf(
  key: DeviceKey,
  challenge: string,
  registering: boolean,
  { head, claims, hash = 'sha256' }: ProofOptions = {},
): string {
  const protectedHead = {
    alg: 'ES256',
    typ: 'dbsc+jwt',
    ...(registering && { jwk: key.jwk }),
    ...head,
  };
  const signed = `${b64(protectedHead)}.${b64({ jti: challenge, ...claims })}`;
  const signature = sign(hash, Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

export interface Registration {
  readonly path: string;
  readonly challenge: string;
  readonly authorization: string;
}

/** The header's one item, by its parameters. */
export function readRegistration(value: string | string[] | undefined): Registration | null {
  const found = /^\(ES256\);path="([^"]*)";challenge="([^"]*)";authorization="([^"]*)"$/.exec(String(value));
  return found ? { path: `${found[1]}`, challenge: `${found[2]}`, authorization: `${found[3]}` } : null;
}

export interface Instructions {
  readonly session_identifier: string;
  readonly refresh_url: string;
}

/** The value of gp_bound, and of which paths it is sent with. */
export function boundOf({ headers }: Reply): { readonly value: string; readonly paths: string[] } {
  const set = headers['set-cookie'] ?? [];
  const cookies = set.filter((one) => one.startsWith('gp_bound='));
  const value = cookies[0]?.slice('gp_bound='.length).split(';')[0] ?? '';
  return { value, paths: cookies.map((one) => /Path=([^;]*)/.exec(one)?.[1] ?? '') };
}

/** A request that the browser makes by itself: no body, and no page behind it. */
export function send(
  url: string,
  path: string,
  cookie: string,
  headers: Readonly<Record<string, string>>,
): Promise<Reply> {
  return ask(url, path, { method: 'POST', headers: { cookie, ...headers } });
}
