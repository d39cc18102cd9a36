import { hkdfSync } from 'node:crypto';
import {
  decodeBase64,
  decryptGcm,
  encryptGcm,
  GCM_IV_BYTES,
  hmacSha256,
  type Random,
} from '../lib/crypto.ts';

const VERSION = 'gpd-wrap/1';
const KEY_BYTES = 32;

/** What a wrapped secret is bound to: a row moved to another tenant or column does not unwrap. */
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

/** The file holds 32 raw bytes, or their base64 with white space around it. Null: it holds neither. */
export function parseMasterKey(file: Uint8Array): Buffer | null {
  if (file.length === KEY_BYTES) return Buffer.from(file);
  const bytes = decodeBase64(Buffer.from(file).toString('latin1').trim());
  return bytes?.length === KEY_BYTES ? bytes : null;
}

export function formatMasterKey(key: Uint8Array): string {
  return `${Buffer.from(key).toString('base64')}\n`;
}

function additionalData(context: WrapContext): Buffer {
  return Buffer.from(
    JSON.stringify([VERSION, context.table, context.tenant, context.purpose, context.generation]),
  );
}

/** AES-256-GCM; the stored form is base64 of iv || ciphertext || tag. */
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

/** What every wrapped secret but the seal keys is bound to. */

export const SERVER_SECRET = 'server-secret';

/** Secrets of a tenant by purpose: everything else of it is derived from the root. */
export const ROOT_SECRET = 'root';
export const LEDGER_SECRET = 'ledger';
export const SYMMETRIC_SECRET = 'symmetric';

const bound = (table: string, tenant: string, purpose: string): WrapContext => ({
  table,
  tenant,
  purpose,
  generation: 1,
});

export const serverSecretContext: WrapContext = bound('meta', '', SERVER_SECRET);

/** The private key that signs exports for subjects. */
export const archiveSignerContext: WrapContext = bound('meta', '', 'archive-signer');

const boundTo = (table: string) => (kid: string, id: string) => bound(table, kid, id);

export const tenantSecretContext = boundTo('tenant_secrets');

export const webhookSecretContext = boundTo('webhooks');

/** Payloads that wait in the outbox, under the tenant's own key. */
export function outboxContext(kid: string): WrapContext {
  return bound('webhook_outbox', kid, 'payload');
}

/** What was written about a contest, under the tenant's own key. */
export const contestContext = boundTo('contests');

/** A principal's key, under the tenant's own key. */
export const principalKeyContext = boundTo('consent_principals');

/** A principal's id, under the tenant's own key. */
export const principalIdContext = boundTo('consent_openings');

export const sessionContext = boundTo('principal_sessions');

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
