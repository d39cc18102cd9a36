import type { Database } from './db.ts';
import { readMetaNumber } from './meta-store.ts';
import { type Cells, makeReads, type Read } from './reads.ts';
import { type Bindings, type HotTransaction, hasRowLocks, runHot } from './sql.ts';
import { GOING } from './tenant-hold.ts';

/** How far time has gone by what was done, whatever a clock says that went back; and of which tenants there is a present. */

const FORGOTTEN = 'nonces-forgotten-to';
/** Of nonces that were used between a backup and its restore nothing is known: no clock was ahead. */
const RESTORED = 'nonces-restored-to';

/** Nonces that expired before `to` may be gone; never lower than it was. */
export const raiseForgotten = (tx: HotTransaction, to: number): Promise<void> => raise(tx, FORGOTTEN, to);

/** The same, after a restore. */
export const raiseRestored = (tx: HotTransaction, to: number): Promise<void> => raise(tx, RESTORED, to);

async function raise(tx: HotTransaction, name: string, to: number): Promise<void> {
  await runHot(
    tx,
    `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
      WHERE CAST(meta.value AS bigint) < CAST(excluded.value AS bigint)`,
    [name, String(to)],
  );
}

/** Null: nothing was forgotten yet. */
export const readForgottenTo = (database: Database): Promise<number | null> =>
  readMetaNumber(database, FORGOTTEN);

export type TimeMarks = ReturnType<typeof toTimeMarks>;

const MARKS = `SELECT q.kid AS kid, t.created_at AS since, CASE q.kid
      WHEN '' THEN (SELECT MAX(CAST(value AS bigint)) FROM meta WHERE name IN ('${FORGOTTEN}', '${RESTORED}'))
      ELSE (SELECT verdicts_sealed_to FROM ledger_heads WHERE kid = q.kid) END AS mark
    FROM q LEFT JOIN`;

/** Read it where nobody else writes, or after a write: then what another node did before is visible. */
export const TIME_MARKS: Read = {
  about: { kid: 'text' },
  sql: `${MARKS} tenants t ON t.kid = q.kid`,
  columns: ['kid', 'mark', 'since'],
};

/** The same where rows have locks; no tenant that was found is removed until the transaction ends (`tenant-hold.ts`). */
const LOCKED_MARKS: Read = {
  ...TIME_MARKS,
  sql: `, held AS (SELECT kid, created_at FROM tenants
      WHERE kid IN (SELECT kid FROM q) AND revision > ${GOING} ORDER BY kid FOR KEY SHARE)
    ${MARKS} held t ON t.kid = q.kid`,
};

/** What {@link TIME_MARKS} is asked about. A kid is never empty. */
export const markedKids = (kids: Iterable<string>): Bindings[] => ['', ...new Set(kids)].map((kid) => [kid]);

/** @param cells of {@link TIME_MARKS} */
export function toTimeMarks(cells: readonly Cells[]) {
  const found = new Map(cells.map(([kid, mark, since]) => [kid, { mark, since }]));
  const markOf = (kid: string): number => Number(found.get(kid)?.mark ?? Number.NEGATIVE_INFINITY);
  const since = (kid: string): number | null => {
    const at = found.get(kid)?.since;
    return at == null ? null : Number(at);
  };
  return {
    /** Nonces that expired before it may be forgotten. */
    forgotten: markOf(''),
    /** Where the hours of a tenant's verdicts that are anchored end. */
    anchored: markOf,
    /** When the tenant was made; null: no such tenant. */
    since,
  };
}

const readMarks = makeReads(TIME_MARKS);
const readLockedMarks = makeReads(LOCKED_MARKS);

/** In a transaction that writes. */
export async function readTimeMarks(tx: HotTransaction, kids: Iterable<string> = []): Promise<TimeMarks> {
  const [cells = []] = await (hasRowLocks(tx) ? readLockedMarks : readMarks)(tx, markedKids(kids));
  return toTimeMarks(cells);
}
