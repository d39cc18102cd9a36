import type { webcrypto } from 'node:crypto';
import { type ConsentError, isUndecided } from './errors.ts';
import type { StateKeySet } from './shapes.ts';
import type { SignedState } from './state-cookie.ts';

/** The keys that sign states (SPEC.md section 10). They are fetched when the first well-formed cookie arrives. */

const TTL_MS = 300_000;
/** Anybody can send a cookie with an unknown key id, so this is the pause between two fetches. */
const REFETCH_MS = 60_000;
/** The pause after a fetch that failed while no key is known. */
const RETRY_MS = 5_000;
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

interface KnownKeys {
  readonly tenant: string;
  readonly byId: ReadonlyMap<string, webcrypto.CryptoKey>;
  readonly fetchedAt: number;
}

async function importKeys({ tenant, keys }: StateKeySet, fetchedAt: number): Promise<KnownKeys> {
  const byId = new Map<string, webcrypto.CryptoKey>();
  for (const { kid, x, y } of keys) {
    const jwk = { kty: 'EC', crv: 'P-256', x, y };
    // A point that is not on the curve is no key; the other keys count all the same.
    const key = await crypto.subtle.importKey('jwk', jwk, ECDSA, false, ['verify']).catch(() => null);
    if (key) byId.set(kid, key);
  }
  return { tenant, byId, fetchedAt };
}

/** True if that much time has passed. A clock that was set back does not stop it. */
const hasPassed = (since: number, pauseMs: number, now: number): boolean =>
  now < since || now >= since + pauseMs;

export class StateKeys {
  #known: KnownKeys | null = null;
  #triedAt = Number.NEGATIVE_INFINITY;
  #failure: ConsentError | null = null;

  /**
   * @param now milliseconds since the epoch
   * @throws {ConsentError} when the key could not be fetched
   */
  async verify(state: SignedState, now: number, fetchKeys: () => Promise<StateKeySet>): Promise<boolean> {
    if (this.#isDue(state.keyId, now)) await this.#fetch(now, fetchKeys);
    const key = this.#known?.byId.get(state.keyId);
    if (!key) {
      if (this.#failure) throw this.#failure;
      return false;
    }
    if (state.tenant !== this.#known?.tenant) return false;
    // Deno finds out here, not at the import, that a point is not on the curve.
    return crypto.subtle.verify(ECDSA, key, state.signature, state.message).catch(() => false);
  }

  #isDue(keyId: string, now: number): boolean {
    if (!this.#known) return hasPassed(this.#triedAt, RETRY_MS, now);
    const isWanted = !this.#known.byId.has(keyId) || hasPassed(this.#known.fetchedAt, TTL_MS, now);
    return isWanted && hasPassed(this.#triedAt, REFETCH_MS, now);
  }

  /** Known keys stay in use when a fetch fails. */
  async #fetch(now: number, fetchKeys: () => Promise<StateKeySet>): Promise<void> {
    // Set before the call, so that other requests go on with the known keys meanwhile.
    if (this.#known) this.#triedAt = now;
    try {
      this.#known = await importKeys(await fetchKeys(), now);
      this.#failure = null;
    } catch (error) {
      if (!isUndecided(error)) throw error;
      this.#failure = error;
    }
    this.#triedAt = now;
  }
}
