import type { StoredSummary } from '../../ingest/summary.ts';
import type { TransparencyView } from '../../schema/rights.ts';

export type Band = 'common' | 'uncommon' | 'rare' | 'not enough data';

/**
 * A prior until the tenant's own population counts: bits as Hiding in the Crowd (2018) found them, the largest of the
 * studies and the one with the least selected visitors (signals.md section 5).
 */
const PRIOR_BITS: Readonly<Record<string, number>> = {
  canvas: 8.6,
  family: 1.2,
  fonts: 6.9,
  gpu: 5.5,
  screen: 4.9,
};

const COMMON_BITS = Math.log2(50);
const UNCOMMON_BITS = Math.log2(1000);

/** common: at least 1 of 50; uncommon: down to 1 of 1,000; rare: less. */
function bandOf(bits: number | undefined): Band {
  if (bits === undefined) return 'not enough data';
  if (bits <= COMMON_BITS) return 'common';
  return bits <= UNCOMMON_BITS ? 'uncommon' : 'rare';
}

const PURPOSE = 'device-identification';
const TIER = 'stable';
const round = (bits: number): number => Math.round(bits * 100) / 100;

/** Under the floor only bands are shown, and no total: a count of few people points at them. */
export function transparencyView(
  summary: StoredSummary,
  facts: { readonly handle: string; readonly purposes: readonly string[]; readonly kAnonymityFloor: number },
): TransparencyView {
  const qualitativeOnly = summary.devices < facts.kAnonymityFloor;
  const signals = summary.signals.map(({ name, bits }) => {
    const measure = qualitativeOnly ? { band: bandOf(PRIOR_BITS[name]) } : { entropyBits: round(bits) };
    return { name, tier: TIER, ...measure, purpose: PURPOSE };
  });
  // Never a sum: signals depend on one another (signals.md section 5).
  const totalEntropyBits = qualitativeOnly ? 0 : round(summary.jointBits);
  return { handle: facts.handle, signals, totalEntropyBits, purposes: [...facts.purposes], qualitativeOnly };
}
