import type { Knex } from 'knex';
import { HOUR } from '../lib/clock.ts';
import { runHot } from './sql.ts';

/** How far time has gone by what was done, whatever a clock says that went back. */

const FORGOTTEN = 'nonces-forgotten-to';

/** Nonces that expired before `to` may be gone; never lower than it was. */
export async function raiseForgotten(tx: Knex.Transaction, to: number): Promise<void> {
  await runHot(
    tx,
    `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
      WHERE CAST(meta.value AS bigint) < CAST(excluded.value AS bigint)`,
    [FORGOTTEN, String(to)],
  );
}

export interface TimeMarks {
  /** Nonces that expired before it may be forgotten. */
  readonly forgotten: number;
  /** Where the hours of a tenant's verdicts that are sealed end. */
  readonly sealed: (kid: string) => number;
}

/** In a transaction that has written already: what another node did before is seen then. */
export async function readTimeMarks(tx: Knex.Transaction, kids: Iterable<string> = []): Promise<TimeMarks> {
  const names = [...new Set(kids)];
  const seals =
    names.length === 0
      ? ''
      : `UNION ALL SELECT kid, max(hour) AS mark FROM verdict_seals
          WHERE kid IN (${names.map(() => '?').join(',')}) GROUP BY kid`;
  // A kid is never empty.
  const sql = `SELECT '' AS kid, CAST(value AS bigint) AS mark FROM meta WHERE name = ? ${seals}`;
  const rows = await runHot<{ kid: string; mark: number }>(tx, sql, [FORGOTTEN, ...names]);
  const marks = new Map(rows.map(({ kid, mark }) => [kid, Number(mark)]));
  return {
    forgotten: marks.get('') ?? Number.NEGATIVE_INFINITY,
    sealed: (kid) => (marks.get(kid) ?? Number.NEGATIVE_INFINITY) + HOUR,
  };
}
