import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { DAY } from '../../lib/clock.ts';
import { AUDIT_DAYS_MS, floorHour } from '../../log/fold.ts';
import { heldWith } from '../erase/holds-store.ts';
import { countOf } from '../erase/rows-store.ts';
import type { TableName } from '../subject-data.ts';
import { type RetainedTable, rowOf } from '../subject-folds.ts';

/** What a tenant's retention takes away now, and how much that is. */

export interface RetentionCounts {
  decisions: number;
  contests: number;
  links: number;
  sightings: number;
  visitorIndex: number;
  audit: number;
}

export interface RetentionRules {
  readonly kid: string;
  /** `retention.days` of the tenant. */
  readonly days: number;
  readonly now: number;
}

/** Whole hours: what was sealed together leaves together. */
export function cutoffsOf({ now, days }: RetentionRules): {
  readonly cutoff: number;
  readonly auditCutoff: number;
} {
  return { cutoff: floorHour(now - days * DAY), auditCutoff: floorHour(now - AUDIT_DAYS_MS) };
}

function holdOn(db: Knex, table: TableName): Knex.QueryBuilder {
  const { scope } = rowOf(table);
  return db('legal_holds')
    .whereRaw('legal_holds.kid = ??.kid AND legal_holds.durable = ??.durable', [table, table])
    .whereIn('legal_holds.scope', scope === null ? [] : [...heldWith(scope)]);
}

/** A legal hold on this kind of data of the row's device: retention leaves it as an erasure does. */
export function unlessHeld(query: Knex.QueryBuilder, db: Knex, table: TableName): Knex.QueryBuilder {
  return query.whereNotExists(holdOn(db, table));
}

const openContest = (db: Knex): Knex.QueryBuilder =>
  db('contests')
    .whereRaw('contests.kid = decisions.kid AND contests.request_id = decisions.request_id')
    .where('contests.status', 'open');

/**
 * A contest of the row's device, or of its request, that stays. What it names stays with it: by that the person asks for the
 * outcome, and an erasure finds the statement.
 */
function keptContest(
  db: Knex,
  table: string,
  by: 'durable' | 'request_id',
  cutoff: number,
): Knex.QueryBuilder {
  return db('contests')
    .whereRaw('contests.kid = ??.kid AND contests.?? = ??.??', [table, by, table, by])
    .where((kept) => {
      kept
        .where('contests.status', 'open')
        .orWhere('contests.resolved_at', '>=', cutoff)
        .orWhereExists(holdOn(db, 'contests'));
    });
}

export function dueDecisions(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const query = db('decisions')
    .where({ kid })
    .where('decided_at', '<', cutoff)
    .whereNotExists(openContest(db));
  return unlessHeld(query, db, 'decisions');
}

/** Of the oldest decision that nothing but time keeps. */
export async function oldestDueDecision(
  database: Database,
  kid: string,
  now: number,
): Promise<number | null> {
  const query = dueDecisions(database.read, kid, now).orderBy('decided_at').limit(1);
  const row = (await query.first('decided_at')) as { decided_at: unknown } | undefined;
  return row === undefined ? null : Number(row.decided_at);
}

export function dueContests(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const query = db('contests').where({ kid, status: 'resolved' }).where('resolved_at', '<', cutoff);
  return unlessHeld(query, db, 'contests');
}

export function dueSightings(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const query = db('sightings')
    .where({ kid })
    .where('last_at', '<', cutoff)
    .whereNotExists(keptContest(db, 'sightings', 'durable', cutoff));
  return unlessHeld(query, db, 'sightings');
}

/** Links whose decision is gone, or goes, and of which no contest stays. */
export function dueLinks(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const stays = db('decisions')
    .whereRaw('decisions.kid = links.kid AND decisions.request_id = links.request_id')
    .where((kept) => {
      kept
        .where('decided_at', '>=', cutoff)
        .orWhereExists(openContest(db))
        .orWhereExists(holdOn(db, 'decisions'));
    });
  return db('links')
    .where({ kid })
    .where('linked_at', '<', cutoff)
    .whereNotExists(stays)
    .whereNotExists(keptContest(db, 'links', 'request_id', cutoff));
}

/** Visitor ids of ended epochs, and those that `more` adds. */
export function dueVisitorIds(
  db: Knex,
  { kid }: RetentionRules,
  cutoff: number,
  more: (due: Knex.QueryBuilder) => void = () => {},
): Knex.QueryBuilder {
  const query = db('visitor_index')
    .where({ kid })
    .where((due) => {
      due.where('ends_at', '<=', cutoff);
      more(due);
    })
    .whereNotExists(keptContest(db, 'visitor_index', 'durable', cutoff));
  return unlessHeld(query, db, 'visitor_index');
}

/** The same, with those of devices that go. */
function allDueVisitorIds(db: Knex, rules: RetentionRules, cutoff: number): Knex.QueryBuilder {
  const gone = dueSightings(db, rules.kid, cutoff).whereRaw('sightings.durable = visitor_index.durable');
  return dueVisitorIds(db, rules, cutoff, (due) => {
    due.orWhereExists(gone);
  });
}

export const dueAudit = (db: Knex, kid: string, cutoff: number): Knex.QueryBuilder =>
  db('audit_log').where({ kid }).where('at', '<', cutoff);

/** What an entry says of what is about to go. */
export async function countSealed(
  database: Database,
  rules: RetentionRules,
): Promise<{ readonly decisions: number; readonly audit: number }> {
  const { kid } = rules;
  const { cutoff, auditCutoff } = cutoffsOf(rules);
  return {
    decisions: await countOf(dueDecisions(database.read, kid, cutoff)),
    audit: await countOf(dueAudit(database.read, kid, auditCutoff)),
  };
}

/** What `retain` would take away, by reads that hold nobody up. */
export async function planRetention(database: Database, rules: RetentionRules): Promise<RetentionCounts> {
  const { kid } = rules;
  const { cutoff, auditCutoff } = cutoffsOf(rules);
  const { read } = database;
  const due = {
    decisions: dueDecisions(read, kid, cutoff),
    contests: dueContests(read, kid, cutoff),
    links: dueLinks(read, kid, cutoff),
    sightings: dueSightings(read, kid, cutoff),
    visitor_index: allDueVisitorIds(read, rules, cutoff),
  } satisfies Record<RetainedTable, Knex.QueryBuilder>;
  return {
    decisions: await countOf(due.decisions),
    contests: await countOf(due.contests),
    links: await countOf(due.links),
    sightings: await countOf(due.sightings),
    visitorIndex: await countOf(due.visitor_index),
    audit: await countOf(dueAudit(read, kid, auditCutoff)),
  };
}
