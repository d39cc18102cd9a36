import { createECDH } from 'node:crypto';
import type { MasterKey, WrapContext } from './master-key.ts';

/** One generation of a tenant's P-256 seal key: staged → published → retiring → destroyed. */
export interface Generation {
  readonly kid: string;
  readonly generation: number;
  readonly state: 'staged' | 'published' | 'retiring' | 'destroyed';
  /** base64 of the 65-byte uncompressed point. */
  readonly publicKey: string;
  /** Null once destroyed: overwritten, and nothing sealed to it opens again. */
  readonly wrappedPrivate: string | null;
  readonly createdAt: number;
  readonly publishedAt: number | null;
  /** When a retiring generation stops opening. */
  readonly retiresAt: number | null;
  readonly destroyedAt: number | null;
}

export function wrapContext(kid: string, generation: number): WrapContext {
  return { table: 'seal_keys', tenant: kid, purpose: 'seal', generation };
}

/** base64 of the uncompressed point: what browsers seal to is computed from the private key, and not believed of a row. */
export function publicKeyOf(privateKey: Uint8Array): string {
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(privateKey);
  return pair.getPublicKey('base64');
}

/** Whether a stored public key belongs to the private key next to it; true too of a destroyed one. @throws {WrongMasterKey} */
export function isOwnPublicKey(masterKey: MasterKey, key: Generation): boolean {
  if (key.wrappedPrivate === null) return key.state === 'destroyed';
  const privateKey = masterKey.unwrap(key.wrappedPrivate, wrapContext(key.kid, key.generation));
  const own = publicKeyOf(privateKey) === key.publicKey;
  privateKey.fill(0);
  return own;
}

/** A fresh key pair, wrapped at once; the private scalar is never held longer than this call. */
export function makeGeneration(
  kid: string,
  generation: number,
  state: 'staged' | 'published',
  deps: { readonly masterKey: MasterKey; readonly now: number },
): Generation {
  const pair = createECDH('prime256v1');
  pair.generateKeys();
  // OpenSSL drops leading zero bytes of a private key; the wrapped form always holds 32.
  const scalar = Buffer.alloc(32);
  const bytes = pair.getPrivateKey();
  bytes.copy(scalar, 32 - bytes.length);
  const wrappedPrivate = deps.masterKey.wrap(scalar, wrapContext(kid, generation));
  scalar.fill(0);
  bytes.fill(0);
  return {
    kid,
    generation,
    state,
    publicKey: pair.getPublicKey('base64'),
    wrappedPrivate,
    createdAt: deps.now,
    publishedAt: state === 'published' ? deps.now : null,
    retiresAt: null,
    destroyedAt: null,
  };
}

/** Published, or retiring with grace left: what bundles may still be sealed to. */
export function isLive(key: Generation, now: number): boolean {
  return key.state === 'published' || (key.state === 'retiring' && (key.retiresAt ?? 0) > now);
}

/** The generations to try, newest first: published, then retiring (contract section 2). */
export function liveGenerations(keys: readonly Generation[], now: number): Generation[] {
  const rank = (key: Generation): number => (key.state === 'published' ? 0 : 1);
  return keys
    .filter((key) => isLive(key, now))
    .sort((a, b) => rank(a) - rank(b) || b.generation - a.generation);
}

export function destroyed(key: Generation, now: number): Generation {
  return { ...key, state: 'destroyed', wrappedPrivate: null, retiresAt: null, destroyedAt: now };
}
