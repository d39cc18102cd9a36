import type { Knex } from 'knex';
import { raiseForgotten } from '../db/clock-rule-store.ts';
import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { cellOf } from '../db/sql.ts';
import type { Verdict } from './verdict.ts';

export type StoredDecision = NonNullable<Awaited<ReturnType<typeof findDecision>>>;

type DecisionRow = Readonly<Record<'verdict', string> & Record<'status' | 'outcome', string | null>>;

/** One verdict of one tenant; another tenant's looks like none. */
export async function findDecision(database: Database, kid: string, requestId: string) {
  const query = database
    .read('decisions as d')
    .leftJoin('contests as c', (join) => join.on('c.kid', 'd.kid').andOn('c.request_id', 'd.request_id'))
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

/** Which tenant has this decision. Ids are unique over all tenants; asked for staff only, who get "not yours". */
export async function tenantOfDecision({ read }: Database, requestId: string): Promise<string | null> {
  const rows = read('decisions')
    .whereIn('kid', read('tenants').select('kid'))
    .where({ request_id: requestId });
  return (await cellOf<string>(rows, 'kid')) ?? null;
}

/** What a contest, a link or an erasure needs to know of a decision. */
export async function decisionKey(db: Knex, kid: string, requestId: string) {
  const rows = db('decisions').where({ kid, request_id: requestId });
  const row = await rows.first<{ durable: string | null; class: string } | undefined>('durable', 'class');
  return row ? { requestId, durable: row.durable, class: row.class } : null;
}

/** Forgets the nonces of bundles that are dated before `from`, and notes that it did. Returns how many went. */
export function purgeNonces(database: Database, from: number): Promise<number> {
  const note = (tx: Knex.Transaction): Promise<void> => raiseForgotten(tx, from);
  return purge(database, 'nonces', ['kid', 'nonce'], (rows) => rows.where('dated_at', '<', from), note);
}
