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

/** At most so many generations are tried when a bundle is opened. */
export const MAX_LIVE = 3;

export type KeyRefusal = 'already-staged' | 'too-many-live' | 'is-published' | 'no-such-generation';

/** What changes; every row whole, to be written in one transaction. */
export interface AcceptedPlan {
  readonly ok: true;
  readonly changed: readonly Generation[];
  readonly result: Generation;
}

export type KeyPlan = AcceptedPlan | { readonly ok: false; readonly why: KeyRefusal };

type Make = (generation: number, state: 'staged' | 'published') => Generation;

export const generationMaker =
  (masterKey: MasterKey, kid: string, now: number): Make =>
  (generation, state) =>
    createGeneration(kid, generation, state, { masterKey, now });

function nextNumber(keys: readonly Generation[]): number {
  return keys.reduce((highest, key) => Math.max(highest, key.generation), 0) + 1;
}

/** Stages a further generation, which the next rotation publishes. One at a time: two would have no order. */
export function planGenerate(keys: readonly Generation[], make: Make): KeyPlan {
  if (keys.some((key) => key.state === 'staged')) return { ok: false, why: 'already-staged' };
  const result = make(nextNumber(keys), 'staged');
  return { ok: true, changed: [result], result };
}

export interface RotateOptions {
  readonly now: number;
  /** How long the generation that was published still opens. */
  readonly graceMs: number;
  /** Destroys the oldest live generation when there would be a fourth. */
  readonly force: boolean;
}

/** Publishes the staged generation, or a new one, and retires the old with a grace (contract section 5). */
export function planRotate(keys: readonly Generation[], make: Make, options: RotateOptions): KeyPlan {
  const { now } = options;
  const live = liveGenerations(keys, now);
  // Without a grace the published one is no longer live afterwards.
  const staying = options.graceMs > 0 ? live : live.filter((key) => key.state !== 'published');
  const surplus = staying.slice(MAX_LIVE - 1);
  if (surplus.length > 0 && !options.force) return { ok: false, why: 'too-many-live' };
  const staged = keys.find((key) => key.state === 'staged');
  const result: Generation = staged
    ? { ...staged, state: 'published', publishedAt: now }
    : make(nextNumber(keys), 'published');
  const retired = live
    .filter((key) => key.state === 'published' && !surplus.includes(key))
    .map((key): Generation => ({ ...key, state: 'retiring', retiresAt: now + options.graceMs }));
  const gone = [...surplus.map((key) => destroyed(key, now)), ...planSweep(keys, now)];
  return { ok: true, changed: [...gone, ...retired, result], result };
}

/** The published generation is what browsers seal to right now: rotate first. Destroying twice is no error. */
export function planDestroy(keys: readonly Generation[], generation: number, now: number): KeyPlan {
  const key = keys.find((candidate) => candidate.generation === generation);
  if (!key) return { ok: false, why: 'no-such-generation' };
  if (key.state === 'published') return { ok: false, why: 'is-published' };
  if (key.state === 'destroyed') return { ok: true, changed: [], result: key };
  const result = destroyed(key, now);
  return { ok: true, changed: [result], result };
}

/** Overwrites the private keys of generations whose grace is over. */
export function planSweep(keys: readonly Generation[], now: number): readonly Generation[] {
  return keys
    .filter((key) => key.state === 'retiring' && !isLive(key, now))
    .map((key) => destroyed(key, now));
}
