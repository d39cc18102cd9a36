import type { Knex } from 'knex';
import { whereAmong } from '../db/sql.ts';

/** Legal holds (GDPR articles 17(3) and 18(2)) as whoever deletes meets them: a held device keeps all of its rows. */

/** The basis of each of these devices that is held. */
export async function holdsOn(
  db: Knex,
  kid: string,
  durables: readonly string[],
): Promise<Map<string, string>> {
  const rows = whereAmong(db('legal_holds').where({ kid }), db, 'durable', durables);
  const found = (await rows.select('durable', 'basis')) as { durable: string; basis: string }[];
  return new Map(found.map(({ durable, basis }) => [durable, basis]));
}

/** Leaves out rows of held devices. @param table of `rows`, with a column `durable` */
export function unlessHeld(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  const sql = 'NOT EXISTS (SELECT 1 FROM legal_holds h WHERE h.kid = ??.kid AND h.durable = ??.durable)';
  return rows.whereRaw(sql, [table, table]);
}

/** The same of rows that name their device by a request. */
export function unlessRequestHeld(rows: Knex.QueryBuilder, table: string): Knex.QueryBuilder {
  const sql = `NOT EXISTS (SELECT 1 FROM decisions d JOIN legal_holds h ON h.kid = d.kid AND h.durable = d.durable
    WHERE d.kid = ??.kid AND d.request_id = ??.request_id)`;
  return rows.whereRaw(sql, [table, table]);
}
