import { createCipheriv, createDecipheriv } from 'node:crypto';
import { decodeBase64 } from '../lib/base64.ts';
import type { Random } from '../lib/random.ts';

const VERSION = 'gpd-wrap/1';
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** What a wrapped secret is bound to: a row moved to another tenant or column does not unwrap. */
export interface WrapContext {
  readonly table: string;
  readonly tenant: string;
  readonly purpose: string;
  readonly generation: number;
}

/** A master key wraps every private key, symmetric key and tenant secret at rest (contract section 5). */
export interface MasterKey {
  wrap(secret: Uint8Array, context: WrapContext): string;
  /** @throws {WrongMasterKey} */
  unwrap(wrapped: string, context: WrapContext): Buffer;
}

export class WrongMasterKey extends Error {
  constructor() {
    super('the master key does not open what is stored: give the key that this database was made with');
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
export function makeMasterKey(key: Uint8Array, random: Random): MasterKey {
  return {
    wrap(secret, context) {
      const iv = random(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
      cipher.setAAD(additionalData(context));
      return Buffer.concat([iv, cipher.update(secret), cipher.final(), cipher.getAuthTag()]).toString(
        'base64',
      );
    },
    unwrap(wrapped, context) {
      const bytes = Buffer.from(wrapped, 'base64');
      if (bytes.length < IV_BYTES + TAG_BYTES) throw new WrongMasterKey();
      const iv = bytes.subarray(0, IV_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
      decipher.setAAD(additionalData(context));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const secret = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES));
      try {
        return Buffer.concat([secret, decipher.final()]);
      } catch {
        throw new WrongMasterKey();
      }
    },
  };
}
