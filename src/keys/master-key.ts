import { hkdfSync } from 'node:crypto';
import {
  decodeBase64,
  decryptGcm,
  encryptGcm,
  GCM_IV_BYTES,
  hmacSha256,
  type Random,
} from '../lib/crypto.ts';

/**
 * Wraps secrets for the database with the master key (contract
 * section 5), and derives the keys of a tenant from its root.
 */

const VERSION = 'gpd-wrap/1';
const KEY_BYTES = 32;

/**
 * Additional data of the encryption: a secret that was moved to another tenant or column cannot be unwrapped.
 */
export interface WrapContext {
  readonly table: string;
  readonly tenant: string;
  readonly purpose: string;
  readonly generation: number;
}

/** A master key wraps every private key, symmetric key and tenant secret at rest (contract section 5). */
export type MasterKey = ReturnType<typeof createMasterKey>;

export class WrongMasterKey extends Error {
  constructor() {
    super('the master key does not open the stored secrets: use the key that this database was created with');
    this.name = 'WrongMasterKey';
  }
}

/** Accepts 32 raw bytes, or their base64 with white space around it. @returns null for anything else */
export function parseMasterKey(file: Uint8Array): Buffer | null {
  if (file.length === KEY_BYTES) return Buffer.from(file);
  const bytes = decodeBase64(Buffer.from(file).toString('latin1').trim());
  return bytes?.length === KEY_BYTES ? bytes : null;
}

/** A repeated pattern, or bytes that count up or down. Of random keys less than one in 2^120 is refused. */
export function isPredictable(key: Uint8Array): boolean {
  const repeats = [1, 2, 4, 8, 16].some((period) => key.every((byte, i) => byte === key[i % period]));
  const step = (i: number): number => ((key[i] ?? 0) - (key[i - 1] ?? 0)) & 0xff;
  return repeats || key.every((_, i) => i < 2 || step(i) === step(1));
}

export function formatMasterKey(key: Uint8Array): string {
  return `${Buffer.from(key).toString('base64')}\n`;
}

function additionalData(context: WrapContext): Buffer {
  return Buffer.from(
    JSON.stringify([VERSION, context.table, context.tenant, context.purpose, context.generation]),
  );
}

/** Encrypts with AES-256-GCM; the stored form is base64 of iv || ciphertext || tag. */
export function createMasterKey(key: Uint8Array, random: Random) {
  return {
    wrap: (secret: Uint8Array, context: WrapContext): string => {
      const iv = random(GCM_IV_BYTES);
      return Buffer.concat([iv, encryptGcm(key, iv, additionalData(context), secret)]).toString('base64');
    },
    /** @throws {WrongMasterKey} */
    unwrap: (wrapped: string, context: WrapContext): Buffer => {
      const bytes = Buffer.from(wrapped, 'base64');
      const [iv, ciphertext] = [bytes.subarray(0, GCM_IV_BYTES), bytes.subarray(GCM_IV_BYTES)];
      const secret = decryptGcm(key, iv, additionalData(context), ciphertext);
      if (!secret) throw new WrongMasterKey();
      return secret;
    },
    /** A key of 32 bytes for another use, by HKDF-SHA-256; `info` names the use. */
    derive: (salt: Uint8Array, info: string) => Buffer.from(hkdfSync('sha256', key, salt, info, KEY_BYTES)),
  };
}

export const SERVER_SECRET = 'server-secret';

/** The purposes of a tenant's wrapped secrets. All other keys of a tenant are derived from its root. */
export const ROOT_SECRET = 'root';
export const LEDGER_SECRET = 'ledger';
export const SYMMETRIC_SECRET = 'symmetric';

const createContext = (table: string, tenant: string, purpose: string): WrapContext => ({
  table,
  tenant,
  purpose,
  generation: 1,
});

export const serverSecretContext: WrapContext = createContext('meta', '', SERVER_SECRET);

/** The private key that signs exports for subjects. */
export const archiveSignerContext: WrapContext = createContext('meta', '', 'archive-signer');

const createContextOf = (table: string) => (kid: string, id: string) => createContext(table, kid, id);

export const tenantSecretContext = createContextOf('tenant_secrets');

export const webhookSecretContext = createContextOf('webhooks');

// The contexts below are for a tenant's own key (`wrapper`), not for the master key.

/** Payloads that wait in the outbox. */
export function outboxContext(kid: string): WrapContext {
  return createContext('webhook_outbox', kid, 'payload');
}

/** The texts that people wrote in a contest. */
export const contestContext = createContextOf('contests');

/** The key of a principal, whose destruction erases the commitments about them. */
export const principalKeyContext = createContextOf('consent_principals');

export const principalIdContext = createContextOf('consent_openings');

export const sessionContext = createContextOf('principal_sessions');

/**
 * All keys of a tenant except its seal keys derive from one
 * wrapped root, so that destroying the root destroys them all.
 */
export function deriveTenantKeys(root: Uint8Array) {
  const epochRoot = hmacSha256(root, 'gpd/epoch/v1');
  return {
    identity: hmacSha256(root, 'gpd/identity/v1'),
    durable: hmacSha256(root, 'gpd/durable/v1'),
    population: hmacSha256(root, 'gpd/population/v1'),
    /** Computes the keyed references of principals. */
    principal: hmacSha256(root, 'gpd/principal/v1'),
    /** Wraps the keys of principals, so that they need no change when the master key is replaced. */
    principalWrap: hmacSha256(root, 'gpd/principal-wrap/v1'),
    /** Computes the keyed references in receipts, audit rows and tombstones. */
    rights: hmacSha256(root, 'gpd/rights/v1'),
    /** Authenticates the rows from which consent is decided. */
    state: hmacSha256(root, 'gpd/state-mac/v1'),
    /** Derives the key that signs files of evidence (contract-2 section 23). */
    evidence: hmacSha256(root, 'gpd/evidence/v1'),
    epoch: (epoch: number) => hmacSha256(epochRoot, `epoch ${epoch}`),
  };
}
