import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { lockTenant } from '../db/meta-store.ts';
import { pagesOf } from '../db/sql.ts';
import type { Verdict } from '../ingest/verdict/verdict.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { Answer } from '../schema/answer.ts';
import type { outcomeRequestSchema, ReportedOutcome } from '../schema/responses.ts';
import type { ContestOutcome } from '../schema/rights.ts';
import type { Pattern } from './proposal.ts';
import { countReview, type RuleFinding } from './tally-store.ts';

/** Stores the outcomes that a tenant's backend reports about decisions, and counts rules for proposals. */

export type OutcomeReporter = ReturnType<typeof createOutcomeReporter>;

/**
 * POST /v1/decisions/{id}/outcome: stores what the tenant's backend learnt later about a decision. A second
 * report changes nothing. Without `at` the report has the time at which it came in, and a repeated report may
 * have any time.
 * @param maxSkewMs by how much the caller's clock may be ahead of ours
 */
export const createOutcomeReporter =
  (database: Database, clock: Clock, maxSkewMs: number) =>
  async (kid: string, requestId: string | null, body: Answer<typeof outcomeRequestSchema>) => {
    const now = clock();
    const at = body.at === undefined ? now : Date.parse(body.at);
    if (at < 0 || at > now + maxSkewMs)
      throw new Refusal('invalid-request', { details: ['at: an instant from 1970 to now'] });
    const stored = requestId === null ? null : await insertOutcome(database, { ...body, kid, requestId, at });
    if (requestId === null || stored === null) throw new Refusal('no-such-decision');
    if (stored.outcome !== body.outcome || (body.at !== undefined && stored.at !== at))
      throw new Refusal('idempotency-conflict');
    return { ...stored, requestId, at: isoTime(stored.at) };
  };

interface Stored {
  readonly outcome: ReportedOutcome;
  readonly at: number;
}

/** The finding about the rules that an outcome implies, where the rules said automation. */
const FINDINGS: Readonly<Record<ReportedOutcome, RuleFinding | null>> = {
  fraud: 'confirmed',
  chargeback: 'confirmed',
  'passed-step-up': 'mistaken',
  'false-alarm': 'mistaken',
  other: null,
};

/**
 * On PostgreSQL this locks the row until the transaction ends, after it has waited for a transaction that
 * changes it.
 */
async function readLockedCell(rows: Knex.QueryBuilder, column: string): Promise<unknown> {
  const row = await rows.forShare().first<object | undefined>({ cell: column });
  return row && 'cell' in row ? row.cell : undefined;
}

const outcomeOf = (tx: Knex.Transaction, kid: string, requestId: string) =>
  tx('decision_outcomes').where({ kid, request_id: requestId }).first<Stored | undefined>('outcome', 'at');

/** @returns null when the decision does not exist; `created` when this report is the one that is stored */
export function insertOutcome(
  database: Database,
  { kid, requestId, outcome, at }: Stored & Readonly<Record<'kid' | 'requestId', string>>,
) {
  const ids = { kid, request_id: requestId };
  return database.transaction(async (tx): Promise<(Stored & { readonly created: boolean }) | null> => {
    await lockTenant(tx, kid);
    const decision = tx('decisions').where(ids);
    if ((await readLockedCell(decision, 'request_id')) === undefined) return null;
    const rows = tx('decision_outcomes').insert({ ...ids, outcome, at });
    const inserted = await rows.onConflict(['kid', 'request_id']).ignore().returning('request_id');
    if (inserted.length === 0) {
      const stored = await outcomeOf(tx, kid, requestId);
      return stored ? { outcome: stored.outcome, at: Number(stored.at), created: false } : null;
    }
    // A ruling outweighs what was reported, and is counted alone.
    const isRuled =
      (await readLockedCell(tx('contests').where({ ...ids, kind: 'contest' }), 'status')) === 'resolved';
    const finding = isRuled ? null : FINDINGS[outcome];
    if (finding) await countReview(tx, kid, requestId, finding);
    return { outcome, at, created: true };
  });
}

/** Counts a ruling in place of what was reported before. The transaction is that of the ruling. */
export async function countRuling(
  tx: Knex.Transaction,
  kid: string,
  requestId: string,
  ruling: ContestOutcome,
) {
  const reported = await outcomeOf(tx, kid, requestId);
  const finding = reported && FINDINGS[reported.outcome];
  if (finding) await countReview(tx, kid, requestId, finding, -1);
  await countReview(tx, kid, requestId, ruling);
}

const PAGE = 1000;

interface Row {
  readonly request_id: string;
  readonly verdict: string;
  readonly outcome: ReportedOutcome | null;
  readonly ruling: ContestOutcome | null;
}

/** Follows the rules of `countReview`: the ruling outweighs the outcome. @returns null if nothing is known */
function isRight({ outcome, ruling }: Row, { class: name }: Verdict): boolean | null {
  if (ruling === 'overturned') return false;
  const finding = ruling ?? (outcome && FINDINGS[outcome]);
  return finding === null || name !== 'undeclared_automation' ? null : finding !== 'mistaken';
}

/**
 * Groups all decisions of a tenant by the rules that fired: one short read per page, and one row per pattern
 * in memory.
 */
export async function readPatterns({ read }: Database, kid: string): Promise<readonly Pattern[]> {
  const patterns = new Map<string, Pattern>();
  const decisions = read('decisions as d')
    .joinRaw('LEFT JOIN decision_outcomes o ON o.kid = d.kid AND o.request_id = d.request_id')
    .joinRaw('LEFT JOIN contests c ON c.kid = d.kid AND c.request_id = d.request_id AND c.kind = ?', [
      'contest',
    ])
    .where('d.kid', kid)
    .select('d.request_id', 'd.verdict', { outcome: 'o.outcome', ruling: 'c.outcome' });
  for await (const rows of pagesOf<Row>(decisions, ['d.request_id'], PAGE))
    for (const row of rows) {
      const verdict = JSON.parse(row.verdict) as Verdict;
      const { incomplete } = verdict;
      const rules = verdict.rules.map(({ id }) => id).sort();
      const decided = verdict.declaredAgentId !== null || verdict.overridden ? verdict.class : null;
      const fixed = row.ruling === 'overturned' ? 'human' : decided;
      const key = JSON.stringify([rules, incomplete, fixed]);
      const {
        decisions: decisionCount = 0,
        right: rightCount = 0,
        wrong: wrongCount = 0,
      } = patterns.get(key) ?? {};
      const finding = isRight(row, verdict);
      const counts = {
        right: rightCount + Number(finding === true),
        wrong: wrongCount + Number(finding === false),
      };
      patterns.set(key, { rules, incomplete, fixed, decisions: decisionCount + 1, ...counts });
    }
  return [...patterns.values()];
}
