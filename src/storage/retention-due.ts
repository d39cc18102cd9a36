import type { Knex } from 'knex';
import { DAY, HOUR } from '../lib/clock.ts';
import type { Scope } from '../rights/erase.ts';
import type { Database } from './db.ts';

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
  readonly epochDays: number;
  readonly now: number;
}

/** The audit log outlives what it tells of: it names nobody. */
const AUDIT_DAYS = 730;

/** Whole hours: what was sealed together leaves together. */
export function cutoffsOf({ now, days }: RetentionRules): {
  readonly cutoff: number;
  readonly auditCutoff: number;
} {
  const floorHour = (at: number): number => Math.floor(at / HOUR) * HOUR;
  return { cutoff: floorHour(now - days * DAY), auditCutoff: floorHour(now - AUDIT_DAYS * DAY) };
}

/** Visitor ids of an epoch before this one lead to nothing that is kept. */
export function oldestEpoch(cutoff: number, epochDays: number): number {
  return Math.floor(cutoff / (epochDays * DAY));
}

function holdOn(db: Knex, table: string, scope: Scope): Knex.QueryBuilder {
  return db('legal_holds')
    .whereRaw('legal_holds.kid = ??.kid AND legal_holds.durable = ??.durable', [table, table])
    .where('legal_holds.scope', scope);
}

/** A legal hold on this kind of data of the row's device: retention leaves it as an erasure does. */
export function unlessHeld(
  query: Knex.QueryBuilder,
  db: Knex,
  table: string,
  scope: Scope,
): Knex.QueryBuilder {
  return query.whereNotExists(holdOn(db, table, scope));
}

const openContest = (db: Knex): Knex.QueryBuilder =>
  db('contests')
    .whereRaw('contests.kid = decisions.kid AND contests.request_id = decisions.request_id')
    .where('contests.status', 'open');

export function dueDecisions(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const query = db('decisions')
    .where({ kid })
    .where('decided_at', '<', cutoff)
    .whereNotExists(openContest(db));
  return unlessHeld(query, db, 'decisions', 'decisions');
}

export function dueContests(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const query = db('contests').where({ kid, status: 'resolved' }).where('resolved_at', '<', cutoff);
  return unlessHeld(query, db, 'contests', 'contests');
}

export function dueSightings(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  return unlessHeld(
    db('sightings').where({ kid }).where('last_at', '<', cutoff),
    db,
    'sightings',
    'sightings',
  );
}

/** Links whose decision is gone, or goes. */
function dueLinks(db: Knex, kid: string, cutoff: number): Knex.QueryBuilder {
  const stays = db('decisions')
    .whereRaw('decisions.kid = links.kid AND decisions.request_id = links.request_id')
    .where((kept) => {
      kept
        .where('decided_at', '>=', cutoff)
        .orWhereExists(openContest(db))
        .orWhereExists(holdOn(db, 'decisions', 'decisions'));
    });
  return db('links').where({ kid }).where('linked_at', '<', cutoff).whereNotExists(stays);
}

/** Visitor ids of ended epochs, and of devices that go. */
function dueVisitorIds(db: Knex, kid: string, cutoff: number, oldest: number): Knex.QueryBuilder {
  const gone = dueSightings(db, kid, cutoff).whereRaw('sightings.durable = visitor_index.durable');
  const query = db('visitor_index')
    .where({ kid })
    .where((due) => {
      due.where('epoch', '<', oldest).orWhereExists(gone);
    });
  return unlessHeld(query, db, 'visitor_index', 'visitor-index');
}

/** What `retain` would take away, by reads that hold nobody up. */
export async function planRetention(database: Database, rules: RetentionRules): Promise<RetentionCounts> {
  const { kid, epochDays } = rules;
  const { cutoff, auditCutoff } = cutoffsOf(rules);
  const { read } = database;
  const count = async (query: Knex.QueryBuilder): Promise<number> => {
    const [row] = (await query.count({ n: '*' })) as { n: number }[];
    return Number(row?.n ?? 0);
  };
  return {
    decisions: await count(dueDecisions(read, kid, cutoff)),
    contests: await count(dueContests(read, kid, cutoff)),
    links: await count(dueLinks(read, kid, cutoff)),
    sightings: await count(dueSightings(read, kid, cutoff)),
    visitorIndex: await count(dueVisitorIds(read, kid, cutoff, oldestEpoch(cutoff, epochDays))),
    audit: await count(read('audit_log').where({ kid }).where('at', '<', auditCutoff)),
  };
}
