import type { Database } from '../db/engine.ts';
import { rowsOf } from '../db/sql.ts';
import { tryOr } from '../lib/errors.ts';
import { storedErasureSchema } from '../schema/rights.ts';
import { heldRows } from './erase/erasure.ts';

/**
 * The register of people's requests, read a page at a time from the tables that store them anyway: contests, receipts of erasures, and the audit rows of
 * exports, which are written when an export begins.
 */

export interface RegisterRow {
  readonly kind: 'contest' | 'erasure' | 'export';
  /** The contest's id, the receipt's id, or `audit ` and the row's number. */
  readonly number: string;
  readonly at: number;
  /** Null for erasures and exports: their due date is computed from `at`. */
  readonly due_at: number | null;
  readonly extended_from: number | null;
  readonly done_at: number | null;
  readonly state: 'open' | 'partly' | 'upheld' | 'overturned' | 'done';
  /** `account` or `case-key` for a contest; otherwise the role that asked. */
  readonly asked_by: string;
  /** JSON of an erasure's receipt: `scopes` has its results, `refs` the rest. Null for other requests. */
  readonly scopes: string | null;
  readonly refs: string | null;
}

/** The next page begins after this row. */
export type RegisterCursor = Pick<RegisterRow, 'at' | 'number'>;

const REQUESTS = `
  SELECT 'contest' AS kind, contest_id AS number, filed_at AS at, due_at, extended_from, resolved_at AS done_at,
    COALESCE(outcome, 'open') AS state, CASE WHEN case_hash IS NULL THEN 'account' ELSE 'case-key' END AS asked_by,
    CAST(NULL AS TEXT) AS scopes, CAST(NULL AS TEXT) AS refs
    FROM contests WHERE kid = ?
  UNION ALL
  SELECT 'erasure', receipt_id, erased_at, NULL, NULL, CASE WHEN step = 'done' THEN erased_at END,
    CASE WHEN step = 'done' THEN 'done' ELSE 'open' END, requested_by,
    scopes, refs
    FROM erasures WHERE kid = ?
  UNION ALL
  SELECT 'export', 'audit ' || seq, at, NULL, NULL, at, 'done', role, NULL, NULL
    FROM audit_log WHERE kid = ? AND action IN ('dsar.exported', 'dsar.staff-exported')`;

type Stored = Pick<RegisterRow, 'scopes' | 'refs'>;

/** Null for a damaged receipt: `gpd erase list` names it. */
const parseErasure = ({ scopes, refs }: Stored) =>
  tryOr(
    () =>
      storedErasureSchema.parse({
        ...(JSON.parse(refs ?? '') as object),
        scopes: JSON.parse(scopes ?? '') as unknown,
      }),
    null,
  );

const isHeld = (row: Stored): boolean => heldRows(parseErasure(row)?.scopes ?? []) > 0;

/** A receipt has a reference per device, request and principal. Only the first of them are looked for. */
const MAX_REFS = 100;

/** @returns the time at which the first later receipt with one of the references was complete and kept nothing; null: none yet */
async function readRestErasedAt(
  { read }: Database,
  kid: string,
  receipt: RegisterRow,
): Promise<number | null> {
  const refs = (parseErasure(receipt)?.refs ?? []).slice(0, MAX_REFS);
  if (refs.length === 0) return null;
  const later = (await read('erasures')
    .where({ kid, step: 'done' })
    .where('erased_at', '>=', receipt.at)
    .where((clause) => {
      for (const { ref } of refs) void clause.orWhere('refs', 'like', `%"${ref}"%`);
    })
    .orderBy('erased_at')
    .select('scopes', 'refs', { at: 'erased_at' })) as (Stored & { readonly at: number })[];
  const completeErasure = later.find((one) => !isHeld(one));
  return completeErasure ? (parseErasure(completeErasure)?.doneAt ?? completeErasure.at) : null;
}

/** An erasure is done when its receipt was complete. One that kept rows under a legal hold is open until the rest is erased. */
async function withEnd(database: Database, kid: string, row: RegisterRow): Promise<RegisterRow> {
  if (row.kind !== 'erasure' || row.state !== 'done') return row;
  // A damaged receipt counts as done when it was requested, because its end cannot be read.
  if (!isHeld(row)) return { ...row, done_at: parseErasure(row)?.doneAt ?? row.done_at };
  const at = await readRestErasedAt(database, kid, row);
  return { ...row, state: at === null ? 'partly' : 'done', done_at: at };
}

/** The newest first. */
export async function registerPage(
  database: Database,
  kid: string,
  after: RegisterCursor | null,
  limit: number,
): Promise<readonly RegisterRow[]> {
  const { read } = database;
  const { at = Number.MAX_SAFE_INTEGER, number = '' } = after ?? {};
  const sql = `SELECT * FROM (${REQUESTS}) AS requests WHERE (at, number) < (?, ?)
    ORDER BY at DESC, number DESC LIMIT ?`;
  const rows = rowsOf<RegisterRow>(await read.raw(sql, [kid, kid, kid, at, number, limit]));
  return Promise.all(rows.map((row) => withEnd(database, kid, row)));
}
