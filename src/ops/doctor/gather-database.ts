import { randomBytes } from 'node:crypto';
import type { Database } from '../../db/db.ts';
import { quickCheck } from '../../db/file-copy.ts';
import { LAST_BACKUP, LAST_RETENTION, LAST_SWEEP, readMeta } from '../../db/meta-store.ts';
import { schemaState } from '../../db/migrate.ts';
import { readForgottenTo } from '../../db/time-marks-store.ts';
import { readEpochLength } from '../../ingest/epoch-length-store.ts';
import { SERVER_SECRET, serverSecretContext } from '../../keys/contexts.ts';
import { type MasterKey, makeMasterKey } from '../../keys/master-key.ts';
import { HOUR } from '../../lib/clock.ts';
import { aheadOf } from '../../lib/steady-clock.ts';
import type { ErasureLog } from '../../rights/erase/erasure-chain-service.ts';
import { countUndone } from '../../rights/erase/erasure-log-files.ts';
import { countOrphanRows } from '../../rights/tenant-rows-store.ts';
import { readEscrow } from '../escrow.ts';
import { readJobFailures } from '../job-store.ts';
import { readStoredSteady } from '../steady-store.ts';
import type { DatabaseFacts, MasterKeyFacts } from './facts.ts';
import {
  countOrphans,
  databaseVersion,
  expiredNonces,
  incompleteErasures,
  isEncrypted,
  missingTables,
  newestDecision,
  overdueContests,
  readPooling,
  readPragmas,
} from './inspect-store.ts';
import { allWrapped, type Wrapped } from './wrapped-store.ts';

async function lastBackupAt(database: Database): Promise<number | null> {
  const value = await readMeta(database, LAST_BACKUP);
  if (value === null) return null;
  const at: unknown = (JSON.parse(value) as { at?: unknown }).at;
  return typeof at === 'number' ? at : null;
}

async function timeOf(database: Database, name: string): Promise<number | null> {
  const value = await readMeta(database, name);
  return value === null ? null : Number(value);
}

const NO_ROWS = {
  orphans: [],
  newestDecisionAt: null,
  expiredNonces: 0,
  lastBackupAt: null,
  epochLength: null,
  lastSweepAt: null,
  lastRetentionAt: null,
  jobFailures: [],
  clockAheadMs: null,
  forgottenTo: null,
  undoneErasures: 0,
  erasures: null,
  contests: null,
} as const;

/** @throws when the database cannot be read at all */
export async function gatherDatabase(
  database: Database,
  now: number,
  { tombstones, problem }: Pick<ErasureLog, 'tombstones' | 'problem'>,
): Promise<DatabaseFacts> {
  const begun = performance.now();
  const version = await databaseVersion(database);
  const answerMs = performance.now() - begun;
  const { pending, unknown } = await schemaState(database);
  const missing = await missingTables(database);
  const about = {
    kind: database.kind,
    answerMs,
    version,
    pragmas: await readPragmas(database),
    integrity: database.kind === 'sqlite' ? await quickCheck(database) : [],
    foreignKeys: await countOrphans(database),
    pendingMigrations: pending,
    unknownMigrations: unknown,
    missingTables: missing,
    brokenErasureLog: problem,
    encrypted: await isEncrypted(database),
    pooling: await readPooling(database),
  };
  if (missing.length > 0) return { ...about, ...NO_ROWS };
  const steady = await readStoredSteady(database);
  const ahead = steady && aheadOf(steady);
  const [incomplete, overdue] = [
    await incompleteErasures(database, now),
    await overdueContests(database, now),
  ];
  return {
    ...about,
    orphans: await countOrphanRows(database),
    newestDecisionAt: await newestDecision(database),
    expiredNonces: await expiredNonces(database, now - (ahead ?? 0) - HOUR),
    lastBackupAt: await lastBackupAt(database),
    epochLength: await readEpochLength(database),
    lastSweepAt: await timeOf(database, LAST_SWEEP),
    lastRetentionAt: await timeOf(database, LAST_RETENTION),
    jobFailures: await readJobFailures(database),
    clockAheadMs: ahead,
    forgottenTo: await readForgottenTo(database),
    undoneErasures: await countUndone(database, tombstones),
    erasures: incomplete === null ? null : { incomplete },
    contests: overdue === null ? null : { overdue },
  };
}

function opens(masterKey: MasterKey, { wrapped, contexts }: Omit<Wrapped, 'name'>): boolean {
  return contexts.some((context) => {
    try {
      masterKey.unwrap(wrapped, context).fill(0);
      return true;
    } catch {
      return false;
    }
  });
}

/** Tries the master key on all that it should open. */
export async function tryMasterKey(
  database: Database,
  key: Buffer | null,
  facts: MasterKeyFacts,
): Promise<MasterKeyFacts> {
  if (!key) return facts;
  const masterKey = makeMasterKey(key, randomBytes);
  const wrapped = await readMeta(database, SERVER_SECRET);
  if (wrapped === null) return facts;
  const fits = opens(masterKey, { wrapped, contexts: [serverSecretContext] });
  const unopened = fits ? (await allWrapped(database)).filter((secret) => !opens(masterKey, secret)) : [];
  const escrow = await readEscrow(database, masterKey);
  return { ...facts, opens: fits, unopened: unopened.map(({ name }) => name), escrow };
}
