import { hmacSha256 } from '../lib/crypto.ts';
import type { GpcPolicy } from '../schema/gpc.ts';
import type { TenantSettings } from './settings.ts';

export interface Tenant {
  readonly kid: string;
  readonly createdAt: number;
  readonly settings: TenantSettings;
}

/** A purpose of processing (contract section 7). */
export interface Purpose {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly lawfulBasis: string;
  /** What a Global Privacy Control signal does to it. */
  readonly gpc: GpcPolicy;
  /** Days a grant lasts. */
  readonly ttlDays: number;
}

const DEVICE_IDENTIFICATION = 'device-identification';
export const DEVICE_ATTESTATION = 'device-attestation';
export const DEFAULT_TTL_DAYS = 180;

/** What every new tenant starts with. */
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

export type TenantKeys = ReturnType<typeof deriveTenantKeys>;

/** Every key of a tenant but the seal keys hangs on one wrapped root, so that destroying it destroys them all. */
export function deriveTenantKeys(root: Uint8Array) {
  const epochRoot = hmacSha256(root, 'gpd/epoch/v1');
  return {
    identity: hmacSha256(root, 'gpd/identity/v1'),
    durable: hmacSha256(root, 'gpd/durable/v1'),
    population: hmacSha256(root, 'gpd/population/v1'),
    /** References of principals. */
    principal: hmacSha256(root, 'gpd/principal/v1'),
    /** Wraps the keys of principals, so that a new master key has not to touch each. */
    principalWrap: hmacSha256(root, 'gpd/principal-wrap/v1'),
    /** Keyed references of receipts, audit rows and tombstones. */
    rights: hmacSha256(root, 'gpd/rights/v1'),
    /** MACs of the rows that consent is decided from. */
    state: hmacSha256(root, 'gpd/state-mac/v1'),
    epoch: (epoch: number) => hmacSha256(epochRoot, `epoch ${epoch}`),
  };
}
