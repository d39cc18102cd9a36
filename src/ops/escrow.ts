import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { createFolder } from '../db/files.ts';
import { ESCROW, readMeta, writeMeta } from '../db/meta-store.ts';
import {
  createMasterKey,
  type MasterKey,
  SERVER_SECRET,
  serverSecretContext,
  type WrapContext,
} from '../keys/master-key.ts';
import { writeRecoveryKey } from '../keys/recovery-key.ts';
import { withClosing } from '../lib/collections.ts';
import { equalBytes } from '../lib/crypto.ts';
import { succeeds } from '../lib/errors.ts';
import { openData, type Store } from '../tenants/installation-files.ts';
import { masterKeyPath, readMasterKey, writeMasterKeyFile } from '../tenants/master-key-files.ts';

/** The master key on paper: printed, confirmed from the paper, and brought back from it. */

const FINGERPRINT_BYTES = 8;

/** Tells one master key from another, and nothing about either. */
function fingerprintOf(masterKey: MasterKey): string {
  return masterKey
    .derive(Buffer.alloc(0), 'gpd-recovery/1 fingerprint')
    .subarray(0, FINGERPRINT_BYTES)
    .toString('hex');
}

/** The store has been opened with this very file. */
export function printRecoveryKey(store: Store, config: Config) {
  const key = readMasterKey(config);
  return {
    groups: writeRecoveryKey(key),
    /** May be written on the backups that this key opens. */
    fingerprint: fingerprintOf(store.masterKey),
  };
}

const noteSchema = z.object({ fingerprint: z.string(), at: z.number() });

/** Whether the recovery key is that of this master key; only then it is noted. */
export async function confirmRecoveryKey(store: Store, config: Config, key: Buffer, now: number) {
  const fingerprint = fingerprintOf(store.masterKey);
  const matches = equalBytes(key, readMasterKey(config));
  if (matches) {
    const note = JSON.stringify({ fingerprint, at: now });
    await store.database.transaction((tx) => writeMeta(tx, ESCROW, note));
  }
  return { matches, fingerprint };
}

/** Null: nobody ever confirmed one. */
export async function readEscrow(database: Database, masterKey: MasterKey) {
  const note = noteSchema.safeParse(JSON.parse((await readMeta(database, ESCROW)) ?? 'null'));
  if (!note.success) return null;
  return {
    confirmedAt: note.data.at,
    /** False: of another master key, the one before `keys rewrap`. */
    current: note.data.fingerprint === fingerprintOf(masterKey),
  };
}

/** Whether this master key opens a secret, the server's own if nothing else is said: by that one a database knows its key. */
export const opens = (
  masterKey: MasterKey,
  wrapped: string,
  context: WrapContext = serverSecretContext,
): boolean => succeeds(() => masterKey.unwrap(wrapped, context).fill(0));

/** Null: there is no database yet that it could be tried on. */
async function opensDatabase(config: Config, masterKey: MasterKey): Promise<boolean | null> {
  if (config.database_url === null && !existsSync(sqliteFile(config))) return null;
  const wrapped = await withClosing(openData(config), async (database) =>
    (await database.read.schema.hasTable('meta')) ? readMeta(database, SERVER_SECRET) : null,
  );
  return wrapped === null ? null : opens(masterKey, wrapped);
}

/**
 * Writes the file of the master key, of mode 0600, where none is.
 * @throws {ConfigError} when it is not the key of the data that are there; then nothing is written
 */
export async function recoverMasterKey(config: Config, key: Buffer, out?: string) {
  const file = out ?? masterKeyPath(config);
  const masterKey = createMasterKey(key, randomBytes);
  const opens = await opensDatabase(config, masterKey);
  if (opens === false)
    throw new ConfigError('this recovery key belongs to another master key: it does not open this data');
  if (out === undefined) createFolder(dirname(file));
  writeMasterKeyFile(file, key);
  return {
    file,
    fingerprint: fingerprintOf(masterKey),
    /** Whether it opens the existing data; null: no data yet. */
    opens,
  };
}
