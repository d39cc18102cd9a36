import { createECDH } from 'node:crypto';
import type { MasterKey, WrapContext } from './master-key.ts';

/**
 * Generations of a tenant's seal key, and the plan of each change (contract section 5).
 * `gpd keys` and housekeeping ask for the plans; a store of the tenants carries them out.
 */

/** One generation of a tenant's P-256 seal key: staged → published → retiring → destroyed. */
export interface Generation {
  readonly kid: string;
  readonly generation: number;
  readonly state: 'staged' | 'published' | 'retiring' | 'destroyed';
  /** base64 of the 65-byte uncompressed point. */
  readonly publicKey: string;
  /** Null once destroyed: it was overwritten, and no bundle sealed to it can be decrypted again. */
  readonly wrappedPrivate: string | null;
  readonly createdAt: number;
  readonly publishedAt: number | null;
  /** From this time on a retiring generation no longer decrypts. */
  readonly retiresAt: number | null;
  readonly destroyedAt: number | null;
}

export function wrapContext(kid: string, generation: number): WrapContext {
  return { table: 'seal_keys', tenant: kid, purpose: 'seal', generation };
}

/**
 * Browsers get a public key that was computed from the private
 * key: a row of the database could have been exchanged.
 */
export function publicKeyOf(privateKey: Uint8Array): string {
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(privateKey);
  return pair.getPublicKey('base64');
}

/**
 * False if the public key of a row was exchanged. A destroyed row has nothing to compare.
 * @throws {WrongMasterKey}
 */
export function isOwnPublicKey(masterKey: MasterKey, key: Generation): boolean {
  if (key.wrappedPrivate === null) return key.state === 'destroyed';
  const privateKey = masterKey.unwrap(key.wrappedPrivate, wrapContext(key.kid, key.generation));
  const belongs = publicKeyOf(privateKey) === key.publicKey;
  privateKey.fill(0);
  return belongs;
}

/** Wraps the new private key at once, and overwrites the plain one before it returns. */
export function createGeneration(
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

/** True of a generation that still decrypts: published, or retiring and within its grace period. */
export function isLive(key: Generation, now: number): boolean {
  return key.state === 'published' || (key.state === 'retiring' && (key.retiresAt ?? 0) > now);
}

/** The order in which they are tried (contract section 2): published, then retiring, newest first. */
export function liveGenerations(keys: readonly Generation[], now: number): Generation[] {
  const sortRank = (key: Generation): number => (key.state === 'published' ? 0 : 1);
  return keys
    .filter((key) => isLive(key, now))
    .sort((a, b) => sortRank(a) - sortRank(b) || b.generation - a.generation);
}

export function destroyGeneration(key: Generation, now: number): Generation {
  return { ...key, state: 'destroyed', wrappedPrivate: null, retiresAt: null, destroyedAt: now };
}

/** A limit on the decryptions that one bundle can cause. */
export const MAX_LIVE = 3;

export type KeyRefusal = 'already-staged' | 'too-many-live' | 'is-published' | 'no-such-generation';

/** The caller writes all changed rows in one transaction. */
export interface AcceptedPlan {
  readonly ok: true;
  readonly changed: readonly Generation[];
  readonly result: Generation;
}

export type KeyPlan = AcceptedPlan | { readonly ok: false; readonly reason: KeyRefusal };

type CreateGeneration = (generation: number, state: 'staged' | 'published') => Generation;

export const createGenerationFactory =
  (masterKey: MasterKey, kid: string, now: number): CreateGeneration =>
  (generation, state) =>
    createGeneration(kid, generation, state, { masterKey, now });

function nextNumber(keys: readonly Generation[]): number {
  return keys.reduce((highest, key) => Math.max(highest, key.generation), 0) + 1;
}

/**
 * Stages a generation, which the next rotation publishes. Only one may be staged: two would have no order.
 */
export function planGenerate(keys: readonly Generation[], make: CreateGeneration): KeyPlan {
  if (keys.some((key) => key.state === 'staged')) return { ok: false, reason: 'already-staged' };
  const result = make(nextNumber(keys), 'staged');
  return { ok: true, changed: [result], result };
}

export interface RotateOptions {
  readonly now: number;
  /** Milliseconds for which the generation published until now still decrypts. */
  readonly graceMs: number;
  /** Destroys the oldest live generation when there would be a fourth. */
  readonly force: boolean;
}

/**
 * Publishes the staged generation, or a new one, and retires
 * the previous one with a grace period (contract section 5).
 */
export function planRotate(
  keys: readonly Generation[],
  make: CreateGeneration,
  options: RotateOptions,
): KeyPlan {
  const { now } = options;
  const live = liveGenerations(keys, now);
  // Without a grace period the published generation is no longer live after the rotation.
  const liveAfterwards = options.graceMs > 0 ? live : live.filter((key) => key.state !== 'published');
  const surplus = liveAfterwards.slice(MAX_LIVE - 1);
  if (surplus.length > 0 && !options.force) return { ok: false, reason: 'too-many-live' };
  const staged = keys.find((key) => key.state === 'staged');
  const result: Generation = staged
    ? { ...staged, state: 'published', publishedAt: now }
    : make(nextNumber(keys), 'published');
  const retired = live
    .filter((key) => key.state === 'published' && !surplus.includes(key))
    .map((key): Generation => ({ ...key, state: 'retiring', retiresAt: now + options.graceMs }));
  const destroyed = [...surplus.map((key) => destroyGeneration(key, now)), ...planSweep(keys, now)];
  return { ok: true, changed: [...destroyed, ...retired, result], result };
}

/** The published generation stays, because browsers seal to it now. Destroying twice is no error. */
export function planDestroy(keys: readonly Generation[], generation: number, now: number): KeyPlan {
  const key = keys.find((candidate) => candidate.generation === generation);
  if (!key) return { ok: false, reason: 'no-such-generation' };
  if (key.state === 'published') return { ok: false, reason: 'is-published' };
  if (key.state === 'destroyed') return { ok: true, changed: [], result: key };
  const result = destroyGeneration(key, now);
  return { ok: true, changed: [result], result };
}

/** Overwrites the private keys of generations whose grace period is over. */
export function planSweep(keys: readonly Generation[], now: number): readonly Generation[] {
  return keys
    .filter((key) => key.state === 'retiring' && !isLive(key, now))
    .map((key) => destroyGeneration(key, now));
}
