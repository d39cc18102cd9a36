import type { Database } from '../db/db.ts';
import { rowsOf } from '../db/sql.ts';

/**
 * All requests of people, read from what holds them anyway: contests, receipts of erasures, and the audit rows of exports, which
 * are written when an export begins.
 */

export interface RegisterRow {
  readonly kind: 'contest' | 'erasure' | 'export';
  readonly number: string;
  readonly at: number;
  /** Of a contest alone; the others follow from when they came. */
  readonly due_at: number | null;
  readonly extended_from: number | null;
  readonly done_at: number | null;
  readonly state: 'open' | 'upheld' | 'overturned' | 'done';
  /** With an account, by a case key, or the role that asked. */
  readonly asked_by: string;
  /** What an erasure stores of itself, as JSON: the time of its end among it. */
  readonly refs: string | null;
}

/** Keyset: what comes after this row. */
export type RegisterCursor = Pick<RegisterRow, 'at' | 'number'>;

const REQUESTS = `
  SELECT 'contest' AS kind, contest_id AS number, filed_at AS at, due_at, extended_from, resolved_at AS done_at,
    COALESCE(outcome, 'open') AS state, CASE WHEN case_hash IS NULL THEN 'account' ELSE 'case-key' END AS asked_by,
    NULL AS refs
    FROM contests WHERE kid = ?
  UNION ALL
  SELECT 'erasure', receipt_id, erased_at, NULL, NULL, CASE WHEN step = 'done' THEN erased_at END,
    CASE WHEN step = 'done' THEN 'done' ELSE 'open' END, requested_by, refs
    FROM erasures WHERE kid = ?
  UNION ALL
  SELECT 'export', 'audit ' || seq, at, NULL, NULL, at, 'done', role, NULL
    FROM audit_log WHERE kid = ? AND action IN ('dsar.exported', 'dsar.staff-exported')`;

/** The newest first. */
export async function registerPage(
  { read }: Database,
  kid: string,
  after: RegisterCursor | null,
  limit: number,
): Promise<readonly RegisterRow[]> {
  const { at = Number.MAX_SAFE_INTEGER, number = '' } = after ?? {};
  const sql = `SELECT * FROM (${REQUESTS}) AS requests WHERE (at, number) < (?, ?)
    ORDER BY at DESC, number DESC LIMIT ?`;
  return rowsOf<RegisterRow>(await read.raw(sql, [kid, kid, kid, at, number, limit]));
}
