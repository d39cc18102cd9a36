import type { Database } from '../db/engine.ts';
import { isTrue, rowsOf } from '../db/sql.ts';
import type { ComplaintStatus, ContestOutcome } from '../schema/rights.ts';

/**
 * The register of people's requests, read a page at a time from the tables that store them anyway: contests,
 * receipts of erasures, and the audit rows of exports, which are written when an export begins.
 */

export interface RegisterRow {
  readonly kind: 'contest' | 'complaint' | 'erasure' | 'export';
  /** The contest's id, the receipt's id, or `audit ` and the row's number. */
  readonly number: string;
  readonly at: number;
  /** Null for erasures and exports: their due date is computed from `at`. */
  readonly due_at: number | null;
  readonly extended_from: number | null;
  readonly done_at: number | null;
  readonly state: 'open' | 'partly' | 'done' | ContestOutcome | ComplaintStatus;
  /** The last time in which the clock of a contest stood still; with `paused_to` null it still does. */
  readonly paused_from: number | null;
  readonly paused_to: number | null;
  /** Only of a complaint. */
  readonly acknowledged_at: number | null;
  /** `account` or `case-key` for a contest; otherwise the role that asked. */
  readonly asked_by: string;
  /** The number of exports that this row stands for. */
  readonly times: number;
}

/** A row after which, or before which, another page begins. */
export type RegisterCursor = Pick<RegisterRow, 'at' | 'number'>;

export interface RegisterQuery {
  /** Null for the first page. */
  readonly cursor: RegisterCursor | null;
  /** The page ends before the cursor. */
  readonly isBackward?: boolean;
  readonly limit: number;
  readonly kind?: RegisterRow['kind'] | undefined;
  /** True for requests alone that are not done, false for those that are. */
  readonly isOpen?: boolean | undefined;
}

type Part = (condition: string) => string;

/** The columns that only contests and complaints have. */
const NEVER_PAUSED = ['paused_from', 'paused_to', 'acknowledged_at']
  .map((name) => `CAST(NULL AS BIGINT) AS ${name}`)
  .join(', ');
/** Contests and complaints. */
const cases: Part = (condition) =>
  `SELECT kind, contest_id AS number, filed_at AS at, due_at, extended_from, resolved_at AS done_at,
    paused_from, paused_to, acknowledged_at,
    CASE WHEN kind = 'contest' THEN COALESCE(outcome, 'open') WHEN resolved_at IS NOT NULL THEN 'answered'
      WHEN acknowledged_at IS NOT NULL THEN 'acknowledged' ELSE 'received' END AS state,
    CASE WHEN case_hash IS NULL THEN 'account' ELSE 'case-key' END AS asked_by, 1 AS times
  FROM contests WHERE kid = ?${condition}`;
const erasures: Part = (condition) =>
  `SELECT 'erasure' AS kind, receipt_id AS number, erased_at AS at, CAST(NULL AS BIGINT) AS due_at,
    CAST(NULL AS BIGINT) AS extended_from, files_clean_at AS done_at, ${NEVER_PAUSED},
    CASE WHEN files_clean_at IS NULL THEN 'open' ELSE 'done' END AS state, requested_by AS asked_by, 1 AS times
  FROM erasures WHERE kid = ?${condition}`;
const exportsOf = (times: string, condition: string): string =>
  `SELECT 'export' AS kind, 'audit ' || seq AS number, at, CAST(NULL AS BIGINT) AS due_at,
    CAST(NULL AS BIGINT) AS extended_from, at AS done_at, ${NEVER_PAUSED}, 'done' AS state, role AS asked_by, ${times} AS times
  FROM audit_log viewed WHERE kid = ? AND action IN ('dsar.exported', 'dsar.staff-exported') ${condition}`;
/** Exports by the person of the same row on the same day in UTC; 86,400,000 milliseconds are a day. */
const SAME_DAY = `FROM audit_log twin WHERE twin.kid = viewed.kid AND twin.object = viewed.object AND twin.action = 'dsar.exported'
  AND viewed.action = twin.action AND twin.at / 86400000 = viewed.at / 86400000`;
const EXPORTS = exportsOf('1', '');
/** The last view of a person on a day stands for all of that day. */
const FOLDED_EXPORTS = exportsOf(
  `(CASE WHEN viewed.object IS NULL OR viewed.action <> 'dsar.exported' THEN 1 ELSE (SELECT COUNT(*) ${SAME_DAY}) END)`,
  `AND NOT EXISTS (SELECT 1 ${SAME_DAY} AND (twin.at, twin.seq) > (viewed.at, viewed.seq))`,
);

const HELD = "SELECT 1 FROM erasure_refs h WHERE h.kind = 'held' AND h.receipt =";

/**
 * When the first later erasure with a reference of this one was complete that kept nothing under a legal
 * hold.
 */
const rest = (receipt: string, erasedAt: string): string => `SELECT e.files_clean_at FROM erasure_refs mine
  JOIN erasure_refs other ON other.kid = mine.kid AND other.kind = mine.kind AND other.ref = mine.ref
  JOIN erasures e ON e.receipt_id = other.receipt
  WHERE mine.receipt = ${receipt} AND mine.kind NOT IN ('held', 'left') AND e.files_clean_at IS NOT NULL
    AND e.erased_at >= ${erasedAt} AND NOT EXISTS (${HELD} e.receipt_id)
  ORDER BY e.erased_at LIMIT 1`;

/** Complete, and nothing is left that a legal hold had kept. */
const IS_DONE = `files_clean_at IS NOT NULL
  AND (NOT EXISTS (${HELD} erasures.receipt_id) OR EXISTS (${rest('erasures.receipt_id', 'erasures.erased_at')}))`;

/** The tables that a query reads, each with its condition. */
function partsOf({ kind, isOpen }: RegisterQuery, isFolded: boolean): readonly string[] {
  const not = isOpen ? ' NOT' : '';
  const ofState = isOpen === undefined ? '' : ` AND status ${isOpen ? '=' : '<>'} 'open'`;
  const parts = [
    ['contest', cases(` AND kind <> 'complaint'${ofState}`)],
    ['complaint', cases(` AND kind = 'complaint'${ofState}`)],
    ['erasure', erasures(isOpen === undefined ? '' : ` AND${not} (${IS_DONE})`)],
    // An export is done as soon as it begins.
    ...(isOpen ? [] : [['export', isFolded ? FOLDED_EXPORTS : EXPORTS] as const]),
  ] as const;
  return parts.filter(([name]) => kind === undefined || kind === name).map(([, sql]) => sql);
}

/** An index finds the rows of each table, and one page of them is read. */
function pageOf(query: RegisterQuery, isFolded: boolean) {
  const [comparison, order] = query.isBackward ? ['>', 'ASC'] : ['<', 'DESC'];
  const sorted = `ORDER BY at ${order}, number ${order} LIMIT ?`;
  const parts = partsOf(query, isFolded).map(
    (sql) =>
      `SELECT * FROM (SELECT * FROM (${sql}) AS rows WHERE at ${comparison}= ? AND (at, number) ${comparison} (?, ?) ${sorted}) AS part`,
  );
  const text = `SELECT page.*, EXISTS (${HELD} page.number) AS is_held,
      CASE WHEN EXISTS (${HELD} page.number) THEN (${rest('page.number', 'page.at')}) END AS rest_at
    FROM (SELECT * FROM (${parts.join(' UNION ALL ')}) AS requests ${sorted}) AS page
    ORDER BY page.at DESC, page.number DESC`;
  return { text, parts: parts.length };
}

interface StoredRow extends RegisterRow {
  readonly is_held: unknown;
  /** When the rest was erased that a legal hold had kept; null: not yet. */
  readonly rest_at: number | null;
}

/**
 * An erasure is done when its receipt was complete. One that kept rows under a legal hold is open until the
 * rest is erased.
 */
function withEnd({ is_held: isHeld, rest_at: restAt, ...row }: StoredRow): RegisterRow {
  if (row.state !== 'done' || !isTrue(isHeld)) return row;
  return restAt === null ? { ...row, state: 'partly', done_at: null } : { ...row, done_at: restAt };
}

/**
 * Reads a page, the newest first, by one query on the connections of long reads.
 * @param isFolded true for one row per person and day that they viewed or exported their own data
 */
export async function registerPage(
  { longRead }: Database,
  kid: string,
  query: RegisterQuery,
  isFolded = false,
): Promise<readonly RegisterRow[]> {
  const { cursor, limit } = query;
  const { text, parts } = pageOf(query, isFolded);
  if (parts === 0) return [];
  const { at = Number.MAX_SAFE_INTEGER, number = '' } = cursor ?? {};
  const bindings = Array.from({ length: parts }, () => [kid, at, at, number, limit]).flat();
  return rowsOf<StoredRow>(await longRead.raw(text, [...bindings, limit])).map(withEnd);
}
