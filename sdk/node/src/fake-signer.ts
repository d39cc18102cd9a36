import { createHash, type webcrypto } from 'node:crypto';

/** Signs the states of a fake with a key that only this fake has. */

const TENANT = 'fake';
const KEY_ID = 'fake-key';
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

export interface FakeState {
  readonly purposes: readonly string[];
  readonly seq: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export class FakeSigner {
  #keys: Promise<webcrypto.CryptoKeyPair> | null = null;
  /** Principals by their reference. */
  readonly #principals = new Map<string, string>();

  principalOf(subject: string): string | undefined {
    return this.#principals.get(subject);
  }

  async jwks(): Promise<object> {
    const { publicKey } = await this.#pair();
    const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey);
    return { tenant: TENANT, keys: [{ kid: KEY_ID, kty, crv, x, y, alg: 'ES256', use: 'sig' }] };
  }

  async sign(principalId: string, { purposes, seq, at }: FakeState): Promise<string> {
    const sub = createHash('sha256').update(`fake subject ${principalId}`).digest('base64url');
    this.#principals.set(sub, principalId);
    const iat = Math.floor(at / 1000);
    const claims = { iss: 'https://fake.example', kid: TENANT, sub, iat, exp: iat + 300, p: purposes, seq };
    const message = `${encode({ alg: 'ES256', kid: KEY_ID, typ: 'JWT' })}.${encode(claims)}`;
    const { privateKey } = await this.#pair();
    const signature = await crypto.subtle.sign(ECDSA, privateKey, Buffer.from(message));
    return `${message}.${Buffer.from(signature).toString('base64url')}`;
  }

  #pair(): Promise<webcrypto.CryptoKeyPair> {
    this.#keys ??= crypto.subtle.generateKey(ECDSA, true, ['sign', 'verify']);
    return this.#keys;
  }
}
