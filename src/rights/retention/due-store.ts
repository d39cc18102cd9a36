import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { DAY } from '../../lib/clock.ts';
import { AUDIT_DAYS_MS, floorHour } from '../../log/fold.ts';
import { heldWith } from '../erase/hold-store.ts';
import { countOf } from '../erase/rows-store.ts';
import { type AgingTable, rowOf } from '../subject-folds.ts';

/** What a tenant's retention takes away now, and how much that is: a fold over the map of a person. */

/** How a result calls the tables, in its order, which is also that of the work. */
export const COUNTED = {
  decisions: 'decisions',
  contests: 'contests',
  links: 'links',
  sightings: 'sightings',
  visitor_index: 'visitorIndex',
  audit_log: 'audit',
} as const satisfies Record<AgingTable, string>;

export const AGING = Object.keys(COUNTED) as AgingTable[];

export type RetentionCounts = Record<(typeof COUNTED)[AgingTable], number>;

export interface RetentionRules {
  readonly kid: string;
  /** `retention.days` of the tenant. */
  readonly days: number;
  readonly now: number;
}

/** Whole hours: what was sealed together leaves together. */
export function cutoffsOf({ now, days }: Omit<RetentionRules, 'kid'>) {
  return { retention: floorHour(now - days * DAY), audit: floorHour(now - AUDIT_DAYS_MS) };
}

type Cutoffs = ReturnType<typeof cutoffsOf>;

/** A legal hold on this kind of data of the row's device: retention leaves it as an erasure does. */
export function unlessHeld(query: Knex.QueryBuilder, db: Knex, table: AgingTable): Knex.QueryBuilder {
  const { scope, names } = rowOf(table);
  if (scope === null || !names.includes('durable')) return query;
  return query.whereNotExists(
    db('legal_holds')
      .whereRaw('legal_holds.kid = ??.kid AND legal_holds.durable = ??.durable', [table, table])
      .whereIn('legal_holds.scope', [...heldWith(scope)]),
  );
}

/** Narrows rows of the table to those that are due. */
function whereDue(
  query: Knex.QueryBuilder,
  db: Knex,
  table: AgingTable,
  cutoffs: Cutoffs,
): Knex.QueryBuilder {
  const { ages, expires } = rowOf(table);
  if (ages === undefined) throw new Error(`${table} does not age`);
  const [column, is] = ages.since;
  query
    .where({ ...ages.where })
    .where(`${table}.${column}`, is, cutoffs[expires.includes('audit') ? 'audit' : 'retention']);
  for (const [rows, by] of ages.keptBy ?? []) {
    const keeper = rows === 'open contests' ? 'contests' : rows;
    const names = [keeper, table, keeper, by, table, by];
    const kept = db(keeper).whereRaw('??.kid = ??.kid AND ??.?? = ??.??', names);
    if (rows === 'open contests') kept.where('contests.status', 'open');
    else kept.whereNot((gone) => void whereDue(gone, db, keeper, cutoffs));
    query.whereNotExists(kept);
  }
  return unlessHeld(query, db, table);
}

export const dueRows = (db: Knex, table: AgingTable, kid: string, cutoffs: Cutoffs): Knex.QueryBuilder =>
  whereDue(db(table).where({ kid }), db, table, cutoffs);

/** Of the oldest decision that nothing but time keeps. */
export async function oldestDueDecision(
  { read }: Database,
  kid: string,
  now: number,
): Promise<number | null> {
  const due = dueRows(read, 'decisions', kid, { retention: now, audit: now });
  const [at] = (await due.orderBy('decided_at').limit(1).pluck('decided_at')) as number[];
  return at ?? null;
}

/** Visitor ids go with their device, too. */
function planned(db: Knex, table: AgingTable, kid: string, cutoffs: Cutoffs): Knex.QueryBuilder {
  const due = dueRows(db, table, kid, cutoffs);
  if (table !== 'visitor_index') return due;
  const gone = dueRows(db, 'sightings', kid, cutoffs).whereRaw('sightings.durable = visitor_index.durable');
  const either = db(table)
    .where({ kid })
    .where((ids) => void ids.whereIn('visitor_id', due.select('visitor_id')).orWhereExists(gone));
  return unlessHeld(either, db, table);
}

/** What `retain` would take away, by reads that hold nobody up. */
export async function planRetention(
  { read }: Database,
  rules: RetentionRules,
  tables: readonly AgingTable[] = AGING,
): Promise<RetentionCounts> {
  const cutoffs = cutoffsOf(rules);
  const counts: Partial<RetentionCounts> = {};
  for (const table of tables)
    counts[COUNTED[table]] = await countOf(planned(read, table, rules.kid, cutoffs));
  return counts as RetentionCounts;
}
