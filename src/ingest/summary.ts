import { hmacSha256 } from '../lib/crypto.ts';
import type { Json } from '../lib/json.ts';

/**
 * `transparency.retain = "summary"` (contract 3.5): how rare each stable signal of this request is in the tenant's
 * population, for the life of the token. Values are counted under a keyed hash and are in no row.
 */
type KeyedSignals = ReturnType<typeof summarise>;

export interface SummaryRequest extends KeyedSignals {
  /** The device was never seen before. */
  readonly newDevice: boolean;
  /** It was not counted from this network today: identical devices count once a network and day. */
  readonly counts: boolean;
  readonly expiresAt: number;
}

const VALUE_BYTES = 16;

export function summarise(populationKey: Uint8Array, inputs: Readonly<Record<string, Json>>) {
  const keyed = (text: string): string =>
    hmacSha256(populationKey, text).subarray(0, VALUE_BYTES).toString('base64url');
  const signals = Object.entries(inputs).flatMap(([name, input]) =>
    input === null ? [] : [{ name, value: keyed(`${name}|${JSON.stringify(input)}`) }],
  );
  // Joint is all of them together: what identifies.
  return { signals, joint: keyed(`joint|${JSON.stringify(inputs)}`) };
}

/** What is kept of a request's signals for the life of its token: how rare, never what. */
export interface StoredSummary {
  /** Devices that were known when it was made. */
  readonly devices: number;
  /** Surprisal of the joint stable hash in the tenant's population: -log2 of its share. */
  readonly jointBits: number;
  readonly signals: readonly {
    readonly name: string;
    /** -log2 of the share of this value. */
    readonly bits: number;
  }[];
}
