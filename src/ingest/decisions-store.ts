import type { Knex } from 'knex';
import { raiseForgotten } from '../db/clock-rule-store.ts';
import type { Database } from '../db/engine.ts';
import { purge } from '../db/purge.ts';
import { cellOf, rowsOf } from '../db/sql.ts';
import type { Verdict } from './verdict/verdict.ts';

/** Reads decisions, and which later decision of the same session supersedes one. */

export type StoredDecision = NonNullable<Awaited<ReturnType<typeof findDecision>>>;

type DecisionRow = Readonly<Record<'verdict', string> & Record<'status' | 'outcome', string | null>>;

/** Reads one verdict of one tenant; another tenant's looks as if it did not exist. */
export async function findDecision(database: Database, kid: string, requestId: string) {
  const query = database
    .read('decisions as d')
    .leftJoin('contests as c', (join) =>
      join.on('c.kid', 'd.kid').andOn('c.request_id', 'd.request_id').andOnVal('c.kind', 'contest'),
    )
    .where({ 'd.kid': kid, 'd.request_id': requestId });
  const columns = ['d.verdict', 'c.status', 'c.outcome'];
  const row = await query.first<DecisionRow | undefined>(columns);
  if (!row) return null;
  return {
    verdict: JSON.parse(row.verdict) as Verdict,
    /** A contest is open: nobody should act on it (contract 6.2). */
    restricted: row.status === 'open',
    /** A reviewer found that the person is no automation. */
    overturned: row.outcome === 'overturned',
  };
}

/**
 * Finds the tenant of a decision. Ids are unique over all tenants; only staff learn that a decision is
 * another tenant's.
 */
export async function tenantOfDecision({ read }: Database, requestId: string): Promise<string | null> {
  const rows = read('decisions')
    .whereIn('kid', read('tenants').select('kid'))
    .where({ request_id: requestId });
  return (await cellOf<string>(rows, 'kid')) ?? null;
}

export async function hasDecisions({ read }: Database, kid: string): Promise<boolean> {
  return (await cellOf<string>(read('decisions').where({ kid }), 'request_id')) !== undefined;
}

/** The facts of a decision that a contest, a link or an erasure needs. */
export async function decisionKey(db: Knex, kid: string, requestId: string) {
  const rows = db('decisions').where({ kid, request_id: requestId });
  const row = await rows.first<{ durable: string | null; class: string } | undefined>('durable', 'class');
  return row ? { requestId, durable: row.durable, class: row.class } : null;
}

/**
 * Forgets the nonces of bundles that are dated before `from`, and notes that it did. Returns how many went.
 */
export function purgeNonces(database: Database, from: number): Promise<number> {
  const note = (tx: Knex.Transaction): Promise<void> => raiseForgotten(tx, from);
  return purge(database, 'nonces', ['kid', 'nonce'], (rows) => rows.where('dated_at', '<', from), note);
}

export async function supersededBy({ read }: Database, kid: string, requestId: string) {
  const rows = read('decision_updates').where({ kid, earlier: requestId });
  return (await cellOf<string>(rows, 'request_id')) ?? null;
}

/** Chains have a maximum length, so that one short query reads a whole one. */
export const MAX_UPDATES = 32;

type End = 'earlier' | 'request_id';

/** Reads the request and then each one that follows, towards later decisions or towards earlier ones. */
async function walk({ read }: Database, kid: string, requestId: string, [from, to]: readonly [End, End]) {
  // A scalar subquery: PostgreSQL has no statistics of these columns, and might join by reading the whole
  // table.
  const nextLink = `SELECT ${to} FROM decision_updates WHERE kid = ? AND ${from} = chain.id`;
  const chain: unknown = await read.raw(
    `WITH RECURSIVE chain(id, step) AS (
      SELECT CAST(? AS text), 0 UNION ALL
      SELECT (${nextLink}), step + 1 FROM chain WHERE id IS NOT NULL AND step < ${MAX_UPDATES}
    ) SELECT id FROM chain WHERE id IS NOT NULL ORDER BY step`,
    [requestId, kid],
  );
  return rowsOf<{ readonly id: string }>(chain).map(({ id }) => id);
}

/** Reads the requests that a right presented with this one reaches: itself, and those that superseded it. */
export const withLater = (database: Database, kid: string, requestId: string): Promise<string[]> =>
  walk(database, kid, requestId, ['earlier', 'request_id']);

/** True if this request ends a chain of the maximum length, so that no other may supersede it. */
export async function endsChain(database: Database, kid: string, requestId: string): Promise<boolean> {
  return (await walk(database, kid, requestId, ['request_id', 'earlier'])).length > MAX_UPDATES;
}
