import type { Knex } from 'knex';
import { DAY, HOUR } from '../lib/clock.ts';
import type { Scope } from '../rights/erase.ts';
import type { Database } from './db.ts';
import { lockHead } from './ledger-append.ts';

/** What time alone takes away, in small steps, so that the writer is never held long. Safe on many nodes at once. */

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
const STEP = 1000;

type Select = (db: Knex) => Knex.QueryBuilder;

/** A legal hold on this kind of data of the row's device: retention leaves it as an erasure does. */
function unlessHeld(query: Knex.QueryBuilder, db: Knex, table: string, scope: Scope): Knex.QueryBuilder {
  return query.whereNotExists(
    db('legal_holds')
      .whereRaw('legal_holds.kid = ??.kid AND legal_holds.durable = ??.durable', [table, table])
      .where('legal_holds.scope', scope),
  );
}

/** Deletes what `select` finds, by key, a step a transaction. */
async function deleteBy(
  database: Database,
  table: string,
  key: readonly string[],
  select: Select,
  around: {
    readonly before?: (tx: Knex.Transaction) => Promise<void>;
    readonly also?: (tx: Knex.Transaction, rows: readonly Record<string, unknown>[]) => Promise<void>;
  } = {},
): Promise<number> {
  let total = 0;
  for (;;) {
    const gone = await database.transaction(async (tx) => {
      await around.before?.(tx);
      const rows = (await select(tx)
        .select([...key])
        .limit(STEP)) as Record<string, unknown>[];
      if (rows.length === 0) return 0;
      await around.also?.(tx, rows);
      const values = rows.map((row) => key.map((name) => row[name] as Knex.Value));
      await tx(table)
        .whereIn([...key], values)
        .delete();
      return rows.length;
    });
    total += gone;
    if (gone < STEP) return total;
  }
}

/** Sealed hours leave whole: the seal in the log stays and has nothing left to be held against. */
async function dropSeals(
  database: Database,
  kid: string,
  cutoff: number,
  auditCutoff: number,
): Promise<void> {
  await database.transaction(async (tx) => {
    await tx('verdict_seals').where({ kid }).where('hour', '<', cutoff).delete();
    await tx('erased_verdicts').where({ kid }).where('hour', '<', cutoff).delete();
    await tx('audit_seals').where({ kid }).where('hour', '<', auditCutoff).delete();
  });
}

/** Decisions under an open contest stay until it is resolved, those under a legal hold until it is released. */
export async function retain(database: Database, rules: RetentionRules): Promise<RetentionCounts> {
  const { kid, now } = rules;
  const floorHour = (at: number): number => Math.floor(at / HOUR) * HOUR;
  const cutoff = floorHour(now - rules.days * DAY);
  const auditCutoff = floorHour(now - AUDIT_DAYS * DAY);
  await dropSeals(database, kid, cutoff, auditCutoff);
  const decisions = await deleteBy(
    database,
    'decisions',
    ['kid', 'request_id'],
    (db) => {
      const query = db('decisions')
        .where({ kid })
        .where('decided_at', '<', cutoff)
        .whereNotExists(
          db('contests')
            .whereRaw('contests.kid = decisions.kid AND contests.request_id = decisions.request_id')
            .where('contests.status', 'open'),
        );
      return unlessHeld(query, db, 'decisions', 'decisions');
    },
    {
      // Filing a contest takes this lock: none is filed against a decision that is just going.
      before: (tx) => lockHead(tx, kid),
      also: async (tx, rows) => {
        const ids = rows.map((row) => String(row['request_id']));
        for (const table of ['webhook_outbox', 'signal_summaries'])
          await tx(table).where({ kid }).whereIn('request_id', ids).delete();
      },
    },
  );
  const contests = await deleteBy(database, 'contests', ['contest_id'], (db) =>
    unlessHeld(
      db('contests').where({ kid, status: 'resolved' }).where('resolved_at', '<', cutoff),
      db,
      'contests',
      'contests',
    ),
  );
  const links = await deleteBy(database, 'links', ['kid', 'request_id'], (db) =>
    db('links')
      .where({ kid })
      .where('linked_at', '<', cutoff)
      .whereNotExists(
        db('decisions').whereRaw('decisions.kid = links.kid AND decisions.request_id = links.request_id'),
      ),
  );
  const sightings = await deleteBy(database, 'sightings', ['kid', 'durable'], (db) =>
    unlessHeld(db('sightings').where({ kid }).where('last_at', '<', cutoff), db, 'sightings', 'sightings'),
  );
  const oldest = Math.floor(cutoff / (rules.epochDays * DAY));
  const visitorIndex = await deleteBy(database, 'visitor_index', ['kid', 'visitor_id'], (db) => {
    const query = db('visitor_index')
      .where({ kid })
      .where((either) => {
        either
          .where('epoch', '<', oldest)
          .orWhereNotExists(
            db('sightings').whereRaw(
              'sightings.kid = visitor_index.kid AND sightings.durable = visitor_index.durable',
            ),
          );
      });
    return unlessHeld(query, db, 'visitor_index', 'visitor-index');
  });
  const audit = await deleteBy(database, 'audit_log', ['seq'], (db) =>
    db('audit_log').where({ kid }).where('at', '<', auditCutoff),
  );
  return { decisions, contests, links, sightings, visitorIndex, audit };
}
