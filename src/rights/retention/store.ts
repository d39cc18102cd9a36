import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { type Key, type OnStep, type Removal, remove, removeWalking } from '../../db/purge.ts';
import { byIndex, countOf, hasRowLocks, whereAmong } from '../../db/sql.ts';
import { deleteVisitorIds, unlessHeld } from '../../ingest/devices-store.ts';
import { entryTime, impersonalEntry } from '../../ledger/entries.ts';
import { DAY } from '../../lib/clock.ts';
import { appendOne, LogDamaged, lockHead } from '../../log/entries-store.ts';
import { AUDIT_DAYS_MS, floorHour } from '../../log/fold.ts';
import type { EntryMacs } from '../../log/problems.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import type { Expiry, TableName } from '../person-map.ts';
import { type AgingTable, rowOf, tablesWhere } from '../person-map.ts';

/**
 * Retention: deletes expired rows table by table, as the map of a person says, in small steps so that writers
 * never wait long.
 */

/** Names of the tables in a result, in the order in which they are deleted. */
export const COUNTED = {
  decisions: 'decisions',
  contests: 'contests',
  links: 'links',
  sightings: 'sightings',
  credentials: 'credentials',
  visitor_index: 'visitorIndex',
  audit_log: 'audit',
} as const satisfies Record<AgingTable, string>;

const AGING = Object.keys(COUNTED) as AgingTable[];

export type RetentionCounts = Record<(typeof COUNTED)[AgingTable], number>;

export interface RetentionRules {
  readonly kid: string;
  /** `retention.days` of the tenant. */
  readonly days: number;
  readonly now: number;
  /** Without them the entry of the log counts as forged. */
  readonly macs?: EntryMacs | undefined;
}

/** Whole hours: rows anchored together are deleted together. */
export function cutoffsOf({ now, days }: Pick<RetentionRules, 'now' | 'days'>) {
  return { retention: floorHour(now - days * DAY), audit: floorHour(now - AUDIT_DAYS_MS) };
}

type Cutoffs = ReturnType<typeof cutoffsOf>;

/** SQLite would rather take an index of contests that begins with their state. */
const CONTEST_OF_REQUEST = 'contests_kid_request_id_kind_unique';

/** Narrows rows of the table to those that are due. */
function whereDue(query: Knex.QueryBuilder, db: Knex, table: AgingTable, cutoffs: Cutoffs) {
  const { ages, expires, names } = rowOf(table);
  if (ages === undefined) throw new Error(`${table} does not age`);
  const [column, is] = ages.since;
  query
    .where({ ...ages.where })
    .where(`${table}.${column}`, is, cutoffs[expires.includes('audit') ? 'audit' : 'retention']);
  for (const [rows, by] of ages.keptBy ?? []) {
    const keeper = rows === 'open contests' ? 'contests' : rows;
    const names = [keeper, table, keeper, by, table, by];
    const from = rows === 'open contests' ? db.raw(byIndex(db, keeper, CONTEST_OF_REQUEST)) : keeper;
    const keepers = db(from as string).whereRaw('??.kid = ??.kid AND ??.?? = ??.??', names);
    if (rows === 'open contests') keepers.where('contests.status', 'open');
    else keepers.whereNot((dueKeepers) => void whereDue(dueKeepers, db, keeper, cutoffs));
    query.whereNotExists(keepers);
  }
  // A link stays for as long as the decision or contest of its request.
  return names.includes('durable') ? unlessHeld(query, table) : query;
}

const dueRows = (db: Knex, table: AgingTable, kid: string, cutoffs: Cutoffs): Knex.QueryBuilder =>
  whereDue(db(table).where({ kid }), db, table, cutoffs);

/** @returns the time of the oldest decision that neither a hold nor an open contest keeps */
export async function oldestDueDecision({ read }: Database, kid: string, now: number) {
  const dueDecisions = dueRows(read, 'decisions', kid, { retention: now, audit: now });
  const [at] = (await dueDecisions.orderBy('decided_at').limit(1).pluck('decided_at')) as number[];
  return at ?? null;
}

/** Visitor ids are also deleted with their device. */
function plannedRows(db: Knex, table: AgingTable, kid: string, cutoffs: Cutoffs): Knex.QueryBuilder {
  const dueIds = dueRows(db, table, kid, cutoffs);
  if (table !== 'visitor_index') return dueIds;
  const dueDevices = dueRows(db, 'sightings', kid, cutoffs).whereRaw(
    'sightings.durable = visitor_index.durable',
  );
  const allIds = db(table)
    .where({ kid })
    .where((ids) => void ids.whereIn('visitor_id', dueIds.select('visitor_id')).orWhereExists(dueDevices));
  return unlessHeld(allIds, table);
}

/** Counts the rows that `deleteExpired` would delete, by reads without locks. */
export async function planRetention(
  { read }: Database,
  rules: RetentionRules,
  tables: readonly AgingTable[] = AGING,
): Promise<RetentionCounts> {
  const cutoffs = cutoffsOf(rules);
  const counts: Partial<RetentionCounts> = {};
  for (const table of tables)
    counts[COUNTED[table]] = await countOf(plannedRows(read, table, rules.kid, cutoffs));
  return counts as RetentionCounts;
}

/** @returns the tables with this expiry, without those that ON DELETE CASCADE empties */
const tablesExpiring = (expiry: Expiry): readonly TableName[] =>
  tablesWhere(({ expires, with: owner }) => expires.includes(expiry) && owner === undefined);
const OF_VERDICT_HOURS = tablesExpiring('verdict-hour');
const OF_AUDIT_HOURS = tablesExpiring('audit-hour');
const WITH_DECISIONS = tablesExpiring('decision');

/**
 * Anchored hours are deleted as a whole; their entries in the log stay. The log records the retention before
 * the deletion, so that expired rows can be told from rows that somebody removed.
 */
async function announceRetention(database: Database, rules: RetentionRules): Promise<void> {
  const { kid } = rules;
  const cutoffs = cutoffsOf(rules);
  const { decisions, audit } = await planRetention(database, rules, ['decisions', 'audit_log']);
  const hours = (db: Knex): Knex.QueryBuilder[] =>
    [...OF_VERDICT_HOURS, ...OF_AUDIT_HOURS].map((table) => {
      const cutoff = OF_AUDIT_HOURS.includes(table) ? cutoffs.audit : cutoffs.retention;
      return db(table).where({ kid }).where('hour', '<', cutoff);
    });
  let dueCount = decisions + audit;
  for (const rows of hours(database.read)) dueCount += await countOf(rows);
  // Without due rows the log gets no entry.
  if (dueCount === 0) return;
  await database.transaction(async (tx) => {
    await lockHead(tx, kid);
    for (const rows of hours(tx)) await rows.delete();
    await appendRetained(tx, rules, { before: cutoffs.retention, decisions, audit });
  });
}

async function appendRetained(
  tx: Knex.Transaction,
  { kid, now, macs }: RetentionRules,
  {
    before: beforeTime,
    ...counts
  }: { readonly before: number; readonly decisions: number; readonly audit: number },
): Promise<void> {
  const body = { before: entryTime(beforeTime), ...counts };
  const entry = impersonalEntry({ type: 'retention.applied', at: now, purpose: null }, body);
  await appendOne(tx, kid, entry, macs);
}

/** Visitor ids of devices that are no longer known; those of ended epochs expire. */
async function removeIdsOf(tx: Knex.Transaction, kid: string, durables: readonly Key[]): Promise<number> {
  const rows = whereAmong(tx('visitor_index').where({ kid }), tx, 'durable', durables);
  return deleteVisitorIds(tx, kid, unlessHeld(rows, 'visitor_index'));
}

/** Deletes the rows that depend on rows that are due. @returns the number of visitor ids among them */
async function deleteDependents(tx: Knex.Transaction, table: AgingTable, kid: string, keys: readonly Key[]) {
  if (table === 'sightings') return removeIdsOf(tx, kid, keys);
  for (const dependent of table === 'decisions' ? WITH_DECISIONS : [])
    await whereAmong(tx(dependent).where({ kid }), tx, 'request_id', keys).delete();
  return 0;
}

/**
 * Filing a contest takes this lock too, so that none is filed against a decision that is just deleted.
 * Without due decisions no lock is needed.
 */
async function lockContests(tx: Knex.Transaction, table: AgingTable, kid: string, keys: readonly Key[]) {
  const { key, ages } = rowOf(table);
  const [, by] = ages?.keptBy?.[0] ?? [];
  if (by === undefined || !hasRowLocks(tx)) return;
  if (table !== 'decisions') {
    const decisions = tx('decisions').whereRaw('decisions.kid = ??.kid AND decisions.?? = ??.??', [
      table,
      by,
      table,
      by,
    ]);
    const rows = whereAmong(tx(table).where({ kid }), tx, key.at(-1) ?? '', keys).whereExists(decisions);
    // A count instead of the first row: PostgreSQL would look for that among all rows of the tenant.
    if ((await countOf(rows)) === 0) return;
  }
  await lockHead(tx, kid);
}

/**
 * Deletes the name of staff who were removed before the cutoff; their row stays, so that a restore of an
 * older backup removes them again. Deletes the row of people who never joined, once their invitation ended
 * before the cutoff.
 */
async function forgetStaffNames(database: Database, kid: string, before: number): Promise<void> {
  const removed = (db: Knex) =>
    db('staff').where({ kid }).where('removed_at', '<', before).whereNot({ name: '' });
  const neverJoined = (db: Knex) =>
    db('staff').where({ kid, joined_at: null, removed_at: null }).where('invite_until', '<', before);
  // Most runs find nobody, and then nothing is written.
  const found = [await removed(database.read).first('id'), await neverJoined(database.read).first('id')];
  if (found.every((row) => row === undefined)) return;
  await database.transaction(async (tx) => {
    await removed(tx).update({ name: '' });
    await neverJoined(tx).delete();
  });
}

/** Deletes the expired rows of one tenant. */
export async function deleteExpired(
  database: Database,
  rules: RetentionRules,
  { shouldContinue = () => true, onStep }: Pick<RetentionOptions, 'shouldContinue' | 'onStep'> = {},
): Promise<RetentionCounts> {
  const { kid } = rules;
  const cutoffs = cutoffsOf(rules);
  await announceRetention(database, rules).catch((error: unknown) => {
    // The law requires the deletion even while the log is damaged.
    if (!(error instanceof LogDamaged)) throw error;
  });
  const counts = Object.fromEntries(Object.values(COUNTED).map((name) => [name, 0])) as RetentionCounts;
  for (const table of AGING) {
    if (!shouldContinue()) return counts;
    const { key, ages } = rowOf(table);
    const removal: Removal = {
      shouldContinue,
      onStep,
      table,
      key: key.at(-1) ?? '',
      within: { kid },
      due: (db) => dueRows(db, table, kid, cutoffs),
      before: (tx, keys) => lockContests(tx, table, kid, keys),
      also: async (tx, keys) => {
        counts.visitorIndex += await deleteDependents(tx, table, kid, keys);
      },
    };
    const timeColumn = ages?.since[0] ?? '';
    counts[COUNTED[table]] += await (ages?.walked ? removeWalking : remove)(database, removal, timeColumn);
  }
  await forgetStaffNames(database, kid, cutoffs.retention);
  // Updates the statistics for query plans; on PostgreSQL autovacuum does it.
  if (database.kind === 'sqlite' && Object.values(counts).some((deletedCount) => deletedCount > 0))
    await database.transaction((tx) => tx.raw('PRAGMA optimize'));
  return counts;
}

export interface RetentionOptions {
  readonly dryRun?: boolean | undefined;
  /** Asked between two steps; false stops the job. */
  readonly shouldContinue?: (() => boolean) | undefined;
  readonly onStep?: OnStep | undefined;
  readonly macs?: EntryMacs | undefined;
}

/**
 * Deletes expired data, for the hourly job and for `gpd retention run`.
 * @returns what was deleted, or with dryRun would be; null for a tenant that was removed
 */
export async function retainTenant(
  database: Database,
  kid: string,
  now: number,
  { dryRun = false, macs, ...steps }: RetentionOptions = {},
) {
  const tenant = await createTenantStore(database).get(kid);
  if (!tenant) return null;
  const rules = { kid, days: tenant.settings['retention.days'], now, macs };
  return dryRun ? planRetention(database, rules) : deleteExpired(database, rules, steps);
}

export const RETENTION_JOB = 'retention';
