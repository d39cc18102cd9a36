import { hkdfSync } from 'node:crypto';
import { decodeBase64 } from '../lib/base64.ts';
import { decryptGcm, encryptGcm, GCM_IV_BYTES } from '../lib/gcm.ts';
import type { Random } from '../lib/random.ts';

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
export type MasterKey = ReturnType<typeof makeMasterKey>;

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
export function makeMasterKey(key: Uint8Array, random: Random) {
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
