import type { Database } from './db.ts';
import { readMeta } from './meta-store.ts';
import { type Cells, makeReads, type Read } from './reads.ts';
import { type Bindings, type Hot, type HotTransaction, runHot } from './sql.ts';

/** How far time has gone by what was done, whatever a clock says that went back. */

const FORGOTTEN = 'nonces-forgotten-to';

/** Nonces that expired before `to` may be gone; never lower than it was. */
export async function raiseForgotten(tx: HotTransaction, to: number): Promise<void> {
  await runHot(
    tx,
    `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
      WHERE CAST(meta.value AS bigint) < CAST(excluded.value AS bigint)`,
    [FORGOTTEN, String(to)],
  );
}

/** Null: nothing was forgotten yet. */
export async function readForgottenTo(database: Database): Promise<number | null> {
  const value = await readMeta(database, FORGOTTEN);
  return value === null ? null : Number(value);
}

export interface TimeMarks {
  /** Nonces that expired before it may be forgotten. */
  readonly forgotten: number;
  /** Where the hours of a tenant's verdicts that are sealed end. */
  readonly sealed: (kid: string) => number;
}

/** To be read where nobody writes beside, or after something was written: what another node did before is seen then. */
export const TIME_MARKS: Read = {
  about: { kid: 'text' },
  sql: `SELECT q.kid AS kid, CASE q.kid
      WHEN '' THEN (SELECT CAST(value AS bigint) FROM meta WHERE name = '${FORGOTTEN}')
      ELSE (SELECT verdicts_sealed_to FROM ledger_heads WHERE kid = q.kid) END AS mark
    FROM q`,
  columns: ['kid', 'mark'],
};

/** What {@link TIME_MARKS} is asked about. A kid is never empty. */
export const markedKids = (kids: Iterable<string>): Bindings[] => ['', ...new Set(kids)].map((kid) => [kid]);

/** @param cells of {@link TIME_MARKS} */
export function toTimeMarks(cells: readonly Cells[]): TimeMarks {
  const marks = new Map(cells.map(([kid, mark]) => [kid, mark]));
  const markOf = (kid: string): number => Number(marks.get(kid) ?? Number.NEGATIVE_INFINITY);
  return { forgotten: markOf(''), sealed: markOf };
}

const readMarks = makeReads(TIME_MARKS);

export async function readTimeMarks(hot: Hot, kids: Iterable<string> = []): Promise<TimeMarks> {
  const [cells = []] = await readMarks(hot, markedKids(kids));
  return toTimeMarks(cells);
}
