import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { remove, removeWalking } from '../../db/purge.ts';
import { whereAmong } from '../../db/sql.ts';
import { entryTime, impersonalEntry } from '../../ledger/entries.ts';
import { appendOne, lockHead } from '../../log/append-store.ts';
import { LogDamaged } from '../../log/read-store.ts';
import type { Expiry, TableName } from '../subject-data.ts';
import { tablesWhere } from '../subject-folds.ts';
import {
  countSealed,
  cutoffsOf,
  dueAudit,
  dueContests,
  dueDecisions,
  dueLinks,
  dueSightings,
  dueVisitorIds,
  type RetentionCounts,
  type RetentionRules,
  unlessHeld,
} from './due-store.ts';

/** What time alone takes away, in small steps, so that the writer is never held long. Safe on many nodes at once. */

const expiring = (expiry: Expiry): readonly TableName[] =>
  tablesWhere(({ expires }) => expires.includes(expiry));
const OF_VERDICT_HOURS = expiring('verdict-hour');
const OF_AUDIT_HOURS = expiring('audit-hour');
const WITH_DECISIONS = expiring('decision');

/**
 * Sealed hours leave whole: the seal in the log stays and has nothing left to be held against. The log says so before anything
 * goes, so that what expired differs from what somebody took.
 */
async function announce(database: Database, rules: RetentionRules): Promise<void> {
  const { kid, now } = rules;
  const { cutoff, auditCutoff } = cutoffsOf(rules);
  const counts = await countSealed(database, rules);
  await database.transaction(async (tx) => {
    await lockHead(tx, kid);
    let seals = 0;
    for (const [tables, before] of [
      [OF_VERDICT_HOURS, cutoff],
      [OF_AUDIT_HOURS, auditCutoff],
    ] as const)
      for (const table of tables) seals += await tx(table).where({ kid }).where('hour', '<', before).delete();
    if (seals + counts.decisions + counts.audit === 0) return;
    await sayRetained(tx, kid, now, { before: cutoff, ...counts });
  });
}

/** What earlier releases took of a log, which said nothing of it. */
export function sayRetainedBefore(
  database: Database,
  kid: string,
  now: number,
  before: number,
): Promise<void> {
  return database.transaction((tx) => sayRetained(tx, kid, now, { before, decisions: 0, audit: 0 }));
}

async function sayRetained(
  tx: Knex.Transaction,
  kid: string,
  now: number,
  { before, ...counts }: { readonly before: number; readonly decisions: number; readonly audit: number },
): Promise<void> {
  const body = { before: entryTime(before), ...counts };
  await appendOne(tx, kid, impersonalEntry({ type: 'retention.applied', at: now, purpose: null }, body));
}

/** Decisions under an open contest stay until it is resolved, those under a legal hold until it is released. */
function removeDecisions(database: Database, kid: string, cutoff: number): Promise<number> {
  return remove(database, {
    table: 'decisions',
    key: ['kid', 'request_id'],
    due: (db) => dueDecisions(db, kid, cutoff),
    // Filing a contest takes this lock: none is filed against a decision that is just going.
    before: (tx) => lockHead(tx, kid),
    also: async (tx, rows) => {
      const ids = rows.map((row) => String(row['request_id']));
      for (const table of WITH_DECISIONS) await tx(table).where({ kid }).whereIn('request_id', ids).delete();
    },
  });
}

function removeContests(database: Database, kid: string, cutoff: number): Promise<number> {
  return remove(database, {
    table: 'contests',
    key: ['contest_id'],
    due: (db) => dueContests(db, kid, cutoff),
  });
}

function removeLinks(database: Database, kid: string, cutoff: number): Promise<number> {
  return removeWalking(
    database,
    {
      table: 'links',
      key: ['kid', 'request_id'],
      due: (db) => dueLinks(db, kid, cutoff),
      before: (tx) => lockHead(tx, kid),
    },
    { within: { kid }, order: 'request_id' },
  );
}

/** Visitor ids of devices that are known no more; those of ended epochs go by themselves. */
async function removeIdsOf(tx: Knex.Transaction, kid: string, durables: readonly string[]): Promise<number> {
  const query = tx('visitor_index')
    .where({ kid })
    .whereIn('durable', [...durables]);
  const ids = (await unlessHeld(query, tx, 'visitor_index').pluck('visitor_id')) as string[];
  // By the table's key: to delete by the device alone SQLite reads all rows of the tenant.
  return whereAmong(tx('visitor_index').where({ kid }), tx, 'visitor_id', ids).delete();
}

/** No index leads to the last visit, which changes with every one: both tables are walked. */
async function removeDevices(
  database: Database,
  rules: RetentionRules,
  cutoff: number,
): Promise<{ readonly sightings: number; readonly visitorIndex: number }> {
  const { kid } = rules;
  // As for a decision: none is contested while what leads to it goes.
  const before = (tx: Knex.Transaction): Promise<void> => lockHead(tx, kid);
  let ids = 0;
  const sightings = await removeWalking(
    database,
    {
      table: 'sightings',
      key: ['kid', 'durable'],
      due: (db) => dueSightings(db, kid, cutoff),
      before,
      also: async (tx, rows) => {
        const durables = rows.map((row) => String(row['durable']));
        ids += await removeIdsOf(tx, kid, durables);
      },
    },
    { within: { kid }, order: 'durable' },
  );
  const ended = await removeWalking(
    database,
    {
      table: 'visitor_index',
      key: ['kid', 'visitor_id'],
      due: (db) => dueVisitorIds(db, rules, cutoff),
      before,
    },
    { within: { kid }, order: 'visitor_id' },
  );
  return { sightings, visitorIndex: ids + ended };
}

/** What the rules of one tenant take away now. */
export async function retain(database: Database, rules: RetentionRules): Promise<RetentionCounts> {
  const { kid } = rules;
  const { cutoff, auditCutoff } = cutoffsOf(rules);
  await announce(database, rules).catch((error: unknown) => {
    // What the law wants gone does not wait until somebody has mended a log.
    if (!(error instanceof LogDamaged)) throw error;
  });
  const decisions = await removeDecisions(database, kid, cutoff);
  const contests = await removeContests(database, kid, cutoff);
  const links = await removeLinks(database, kid, cutoff);
  const devices = await removeDevices(database, rules, cutoff);
  const audit = await remove(database, {
    table: 'audit_log',
    key: ['seq'],
    due: (db) => dueAudit(db, kid, auditCutoff),
  });
  return { decisions, contests, links, ...devices, audit };
}
