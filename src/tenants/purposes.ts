import type { GpcPolicy } from '../schema/gpc.ts';

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
}

export const DEVICE_IDENTIFICATION = 'device-identification';
export const DEVICE_ATTESTATION = 'device-attestation';
export const DEFAULT_TTL_DAYS = 180;

/** The purposes that every new tenant starts with. */
export function firstPurpose(): Purpose {
  return {
    id: DEVICE_IDENTIFICATION,
    title: 'Device identification',
    description: 'Recognises this device to tell people from automation and to prevent abuse.',
    lawfulBasis: 'consent',
    gpc: 'opt-out',
    ttlDays: DEFAULT_TTL_DAYS,
  };
}

/** There for every tenant, whether its log defines it or not; a tenant that asks people for it defines it in its own words. */
export const attestationPurpose: Purpose = {
  ...firstPurpose(),
  id: DEVICE_ATTESTATION,
  title: 'Passkey for this device',
  description: 'Keeps a passkey that this device makes, to tell it apart from devices that look the same.',
};

/** A version of what a tenant tells people about its processing. */
export interface ConsentPolicy {
  readonly version: number;
  /** SHA-256 of the exact text, lower-case hex. */
  readonly sha256: string;
  /** People who agreed to an earlier version have to be asked again. */
  readonly material: boolean;
  readonly publishedAt: number;
}
