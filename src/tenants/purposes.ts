import type { GpcPolicy } from '../schema/gpc.ts';

/** Purposes and policies of a tenant, and the purposes that gpd defines. */

/** A purpose of processing (contract section 7). */
export interface Purpose {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly lawfulBasis: string;
  /** The effect of a Global Privacy Control signal on it. */
  readonly gpc: GpcPolicy;
  /** Days a grant lasts. */
  readonly ttlDays: number;
  /** False: the banner never asks for it. */
  readonly banner: boolean;
}

/**
 * A purpose with the places in the tenant's log that its words come from. A choice carries the definition
 * that it was made under, so that it counts for those words only (contract-2 section 22, ADR 0072).
 */
export interface DefinedPurpose extends Purpose {
  /** The entry `purpose.defined` that has these words; null: no entry has them, gpd wrote them. */
  readonly definition: number | null;
  /** The first definition that a grant may carry, because earlier ones had other words; null: any. */
  readonly materialSince: number | null;
  /** The last entry before which the GPC policy was `opt-out`, and is not now; null: it never was. */
  readonly optOutUntil: number | null;
  /** The last entry before which it was `ask`, and is not now; null: it never was. */
  readonly askUntil: number | null;
}

const WORDS = ['title', 'description', 'lawfulBasis', 'gpc'] as const;

/**
 * The purpose after the entry `seq` defined it.
 * @param before undefined: the purpose is new, or was removed; then no earlier grant counts, and every
 * earlier choice was under `opt-out`
 * @param isMaterial false: the writer said that nobody has to be asked again
 */
export function definedBy(
  seq: number,
  purpose: Purpose,
  before: DefinedPurpose | undefined,
  isMaterial: boolean,
): DefinedPurpose {
  const isNew = !before || (isMaterial && WORDS.some((name) => before[name] !== purpose[name]));
  return {
    ...purpose,
    definition: seq,
    materialSince: isNew ? seq : before.materialSince,
    optOutUntil: !before || before.gpc === 'opt-out' ? seq - 1 : before.optOutUntil,
    askUntil: before?.gpc === 'ask' ? seq - 1 : (before?.askUntil ?? null),
  };
}

/**
 * Is `chosen`, the definition that a choice carries, at or before this entry? No definition comes before all
 * entries.
 */
const isUntil = (chosen: number | null, seq: number | null): boolean => seq !== null && (chosen ?? -1) <= seq;

/** Were the words changed since the definition that a choice carries? */
export function isOutdated(
  { definition, materialSince }: Pick<DefinedPurpose, 'definition' | 'materialSince'>,
  chosen: number | null,
): boolean {
  if (definition === null) return chosen !== null;
  return materialSince !== null && isUntil(chosen, materialSince - 1);
}

/**
 * The strictest GPC policy since the definition that a choice carries: a laxer one must not end an opt-out.
 */
export function strictestGpc(
  { gpc, optOutUntil, askUntil }: DefinedPurpose,
  chosen: number | null,
): GpcPolicy {
  if (gpc === 'opt-out' || isUntil(chosen, optOutUntil)) return 'opt-out';
  return gpc === 'ask' || isUntil(chosen, askUntil) ? 'ask' : 'ignore';
}

export const DEVICE_IDENTIFICATION = 'device-identification';
export const DEVICE_ATTESTATION = 'device-attestation';
export const DEFAULT_TTL_DAYS = 180;

/** Every new tenant starts with this purpose. */
export function createFirstPurpose(): Purpose {
  return {
    id: DEVICE_IDENTIFICATION,
    title: 'Device identification',
    description: 'Recognises this device to tell people from automation and to prevent abuse.',
    lawfulBasis: 'consent',
    gpc: 'opt-out',
    ttlDays: DEFAULT_TTL_DAYS,
    banner: true,
  };
}

/** Every tenant has this purpose. A tenant that asks for it can define it in its log with another text. */
export const attestationPurpose: DefinedPurpose = {
  ...createFirstPurpose(),
  definition: null,
  materialSince: null,
  optOutUntil: null,
  askUntil: null,
  id: DEVICE_ATTESTATION,
  title: 'Passkey for this device',
  description: 'Keeps a passkey that this device makes, to tell it apart from devices that look the same.',
};

/** One version of the text in which a tenant informs people about its processing. */
export interface ConsentPolicy {
  readonly version: number;
  /** SHA-256 of the exact text, lower-case hex. */
  readonly sha256: string;
  /** People who agreed to an earlier version must be asked again. */
  readonly material: boolean;
  readonly publishedAt: number;
}
