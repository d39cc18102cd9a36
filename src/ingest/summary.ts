import type { Json } from '../lib/canonical-json.ts';
import { hmacSha256 } from '../lib/hash.ts';

/**
 * `transparency.retain = "summary"` (contract 3.5): how rare each stable signal of this request is among the tenant's
 * devices, for the life of the token. Values are counted under a keyed hash and are in no row.
 */
export interface SummaryRequest {
  readonly signals: readonly { readonly name: string; readonly value: string }[];
  /** The first sighting of the device: its values are counted. */
  readonly first: boolean;
  readonly expiresAt: number;
}

const VALUE_BYTES = 16;

export function summarise(
  populationKey: Uint8Array,
  inputs: Readonly<Record<string, Json>>,
  facts: Pick<SummaryRequest, 'first' | 'expiresAt'>,
): SummaryRequest {
  const signals = Object.entries(inputs).flatMap(([name, input]) => {
    if (input === null) return [];
    const keyed = hmacSha256(populationKey, `${name}|${JSON.stringify(input)}`);
    return [{ name, value: keyed.subarray(0, VALUE_BYTES).toString('base64url') }];
  });
  return { ...facts, signals };
}
