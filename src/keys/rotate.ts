import { destroyed, type Generation, isLive, liveGenerations } from './generation.ts';

/** At most so many generations are tried when a bundle is opened. */
export const MAX_LIVE = 3;

export type KeyRefusal = 'already-staged' | 'too-many-live' | 'is-published' | 'no-such-generation';

/** What changes; every row whole, to be written in one transaction. */
export type KeyPlan =
  | { readonly ok: true; readonly changed: readonly Generation[]; readonly result: Generation }
  | { readonly ok: false; readonly why: KeyRefusal };

type Make = (generation: number, state: 'staged' | 'published') => Generation;

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
