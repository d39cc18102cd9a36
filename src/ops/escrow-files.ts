import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { type Config, ConfigError, sqliteFile } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { ESCROW, readMeta, writeMeta } from '../db/meta-store.ts';
import { createFolder } from '../db/own-files.ts';
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

/**
 * `gpd master-key`: prints the recovery key, confirms it from paper, and writes the master key file from it.
 */

const FINGERPRINT_BYTES = 8;

/** Identifies a master key without revealing anything about it. */
function fingerprintOf(masterKey: MasterKey): string {
  return masterKey
    .derive(Buffer.alloc(0), 'gpd-recovery/1 fingerprint')
    .subarray(0, FINGERPRINT_BYTES)
    .toString('hex');
}

/** The store was opened with the file that is printed here. */
export function printRecoveryKey(store: Store, config: Config) {
  const key = readMasterKey(config);
  return {
    groups: writeRecoveryKey(key),
    /** May be written on the backups that this key opens. */
    fingerprint: fingerprintOf(store.masterKey),
  };
}

const noteSchema = z.object({ fingerprint: z.string(), at: z.number() });

/** Compares the recovery key with the master key, and records the confirmation if they match. */
export async function confirmRecoveryKey(store: Store, config: Config, key: Buffer, now: number) {
  const fingerprint = fingerprintOf(store.masterKey);
  const matches = equalBytes(key, readMasterKey(config));
  if (matches) {
    const note = JSON.stringify({ fingerprint, at: now });
    await store.database.transaction((tx) => writeMeta(tx, ESCROW, note));
  }
  return { matches, fingerprint };
}

/** @returns the last confirmation, or null before the first */
export async function readEscrow(database: Database, masterKey: MasterKey) {
  const note = noteSchema.safeParse(JSON.parse((await readMeta(database, ESCROW)) ?? 'null'));
  if (!note.success) return null;
  return {
    confirmedAt: note.data.at,
    /** False if the master key has changed since (`gpd keys rewrap`). */
    current: note.data.fingerprint === fingerprintOf(masterKey),
  };
}

/** The default `context` is the server secret's, which decides whether a key belongs to a database. */
export const opensSecret = (
  masterKey: MasterKey,
  wrapped: string,
  context: WrapContext = serverSecretContext,
): boolean => succeeds(() => masterKey.unwrap(wrapped, context).fill(0));

/** @returns null where there is no database to try the key on */
async function opensDatabase(config: Config, masterKey: MasterKey): Promise<boolean | null> {
  if (config.database_url === null && !existsSync(sqliteFile(config))) return null;
  const wrapped = await withClosing(openData(config), async (database) =>
    (await database.read.schema.hasTable('meta')) ? readMeta(database, SERVER_SECRET) : null,
  );
  return wrapped === null ? null : opensSecret(masterKey, wrapped);
}

/**
 * Writes a missing master key file, with mode 0600.
 * @throws {ConfigError} when the key does not open the existing data; then nothing is written
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
    /** True: it opens the existing data; null: there is no data yet. */
    opens,
  };
}
