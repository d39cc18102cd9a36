import type { Knex } from 'knex';
import { WEAKENING_ACTIONS, weakensSafeguard } from '../audit/safeguards.ts';
import type { Database } from '../db/engine.ts';
import { countUpTo, rowsOf } from '../db/sql.ts';
import type { Json } from '../lib/json.ts';
import { COUNT_CAP } from '../rights/contests/queue-store.ts';
import { UNFINISHED } from '../rights/erase/receipts-store.ts';

/** Reads what the overview and the sidebar count, apart from visits and consent. */

export interface UrgentCase {
  readonly contestId: string;
  readonly filedAt: number;
  readonly dueAt: number;
}

/** @returns the open case with the first due date */
export async function readMostUrgent({ read }: Database, kid: string): Promise<UrgentCase | null> {
  const open = read('contests').where({ kid, status: 'open' }).orderBy(['due_at', 'contest_id']);
  const columns = { contestId: 'contest_id', filedAt: 'filed_at', dueAt: 'due_at' };
  const row = await open.first<UrgentCase | undefined>(columns);
  return row ? { ...row, filedAt: Number(row.filedAt), dueAt: Number(row.dueAt) } : null;
}

const resolvedCases = ({ read }: Database, kid: string, from: number, to: number): Knex.QueryBuilder =>
  read('contests')
    .where({ kid, status: 'resolved' })
    .where('resolved_at', '>=', from)
    .where('resolved_at', '<', to);

export interface Answered {
  /** More than COUNT_CAP is COUNT_CAP + 1. */
  readonly n: number;
  readonly overturned: number;
  /** Milliseconds from filing to ruling; null without a ruling. */
  readonly median: number | null;
}

export async function readAnswered(
  database: Database,
  kid: string,
  from: number,
  to: number,
): Promise<Answered> {
  const rows = (await resolvedCases(database, kid, from, to)
    .orderBy('resolved_at', 'desc')
    .limit(COUNT_CAP + 1)
    .select('filed_at', 'resolved_at', 'outcome')) as {
    filed_at: number;
    resolved_at: number;
    outcome: string;
  }[];
  const spans = rows.map((row) => Number(row.resolved_at) - Number(row.filed_at)).sort((a, b) => a - b);
  return {
    n: rows.length,
    overturned: rows.filter(({ outcome }) => outcome === 'overturned').length,
    median: spans[Math.floor((spans.length - 1) / 2)] ?? null,
  };
}

export const countAnswered = (database: Database, kid: string, from: number, to: number): Promise<number> =>
  countUpTo(database.read, resolvedCases(database, kid, from, to), COUNT_CAP);

export const countProposed = ({ read }: Database, kid: string): Promise<number> =>
  countUpTo(read, read('contests').where({ kid, status: 'open' }).whereNotNull('proposed_by'), COUNT_CAP);

const KEPT = "SELECT 1 FROM erasure_refs k WHERE k.kind = 'held' AND k.receipt =";
/** Receipts that kept rows under a legal hold, of which no later erasure took the rest. */
const WAITING_FOR_HOLD = `SELECT DISTINCT h.receipt FROM erasure_refs h JOIN erasures mine ON mine.receipt_id = h.receipt
  WHERE h.kid = ? AND h.kind = 'held' AND NOT EXISTS (
    SELECT 1 FROM erasure_refs a
    JOIN erasure_refs b ON b.kid = a.kid AND b.kind = a.kind AND b.ref = a.ref
    JOIN erasures e ON e.receipt_id = b.receipt
    WHERE a.receipt = h.receipt AND a.kind NOT IN ('held', 'left') AND e.files_clean_at IS NOT NULL
      AND e.erased_at >= mine.erased_at AND NOT EXISTS (${KEPT} e.receipt_id))
  LIMIT ?`;

/** Erasures that are not finished: those that wait for a legal hold, and those that gpd still works on. */
export async function countWaitingErasures({ read }: Database, kid: string, cap: number) {
  const [waiting, unfinished] = await Promise.all([
    read.raw(WAITING_FOR_HOLD, [kid, cap + 1]).then((found) => rowsOf(found).length),
    countUpTo(read, read('erasures').where({ kid }).whereIn('state', UNFINISHED), cap),
  ]);
  return { held: waiting, unfinished };
}

const MAX_ACTS = 200;

/** Counts the acts since `from` that weakened a safeguard or gave access. At most MAX_ACTS are looked at. */
export async function countWeakeningActs({ read }: Database, kid: string, from: number): Promise<number> {
  const rows = (await read('audit_log')
    .where({ kid })
    .where('at', '>=', from)
    .whereIn('action', ['tenant.set', ...WEAKENING_ACTIONS])
    .orderBy('at', 'desc')
    .limit(MAX_ACTS)
    .select('action', 'detail')) as { action: string; detail: string }[];
  return rows.filter(({ action, detail }) =>
    weakensSafeguard(action, JSON.parse(detail) as Record<string, Json>),
  ).length;
}

/** Counts events that gpd gave up to deliver by webhook or mail. */
export const countFailedEvents = ({ read }: Database, kid: string): Promise<number> =>
  countUpTo(read, read('webhook_outbox').where({ kid, state: 'failed' }), COUNT_CAP);
