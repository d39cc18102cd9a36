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
  };
}

/**
 * Every tenant has this purpose. A tenant that asks people
 * for it can define it in its log with a text for them.
 */
export const attestationPurpose: Purpose = {
  ...createFirstPurpose(),
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
