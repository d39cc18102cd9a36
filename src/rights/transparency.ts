import type { TransparencyView } from '../schema/rights.ts';

/** What is kept of a request's signals for the life of its token: how rare, never what. */
export interface StoredSummary {
  /** Devices that were counted when it was made. */
  readonly devices: number;
  readonly signals: readonly {
    readonly name: string;
    /** -log2 of the share of devices with this value. */
    readonly bits: number;
  }[];
}

/**
 * How much a kind of signal usually tells apart, for populations too small to say it of this one (orders of magnitude
 * as browser-fingerprint surveys find them).
 */
const USUAL_BAND: Readonly<Record<string, 'low' | 'medium' | 'high'>> = {
  audio: 'medium',
  canvas: 'high',
  fonts: 'high',
  gpu: 'high',
  model: 'high',
  screen: 'medium',
  cores: 'medium',
  memory: 'medium',
};

const PURPOSE = 'device-identification';
const TIER = 'stable';
const round = (bits: number): number => Math.round(bits * 100) / 100;

/** Under the floor only bands are told, and no total: a count of few people points at them. */
export function transparencyView(
  summary: StoredSummary,
  facts: { readonly handle: string; readonly purposes: readonly string[]; readonly kAnonymityFloor: number },
): TransparencyView {
  const qualitativeOnly = summary.devices < facts.kAnonymityFloor;
  const signals = summary.signals.map(({ name, bits }) => {
    const measure = qualitativeOnly ? { band: USUAL_BAND[name] ?? 'low' } : { entropyBits: round(bits) };
    return { name, tier: TIER, ...measure, purpose: PURPOSE };
  });
  // Signals depend on one another: together they cannot tell more apart than there are devices.
  const sum = summary.signals.reduce((total, { bits }) => total + bits, 0);
  const totalEntropyBits = qualitativeOnly ? 0 : round(Math.min(sum, Math.log2(summary.devices)));
  return { handle: facts.handle, signals, totalEntropyBits, purposes: [...facts.purposes], qualitativeOnly };
}
