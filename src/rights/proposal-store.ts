import type { Database } from '../db/db.ts';
import { pagesOf } from '../db/sql.ts';
import { unmarked } from '../ingest/erasing-store.ts';
import type { Verdict } from '../ingest/verdict.ts';
import type { ReportedOutcome } from '../schema/responses.ts';
import type { Outcome } from '../schema/rights.ts';
import { FINDINGS } from './outcome-store.ts';
import type { Pattern } from './proposal.ts';

const PAGE = 1000;

interface Row {
  readonly request_id: string;
  readonly verdict: string;
  readonly outcome: ReportedOutcome | null;
  readonly ruling: Outcome | null;
}

/** As `countReview` counts it; the ruling outweighs the outcome. */
function isRight({ outcome, ruling }: Row, { class: name }: Verdict): boolean | null {
  if (ruling === 'overturned') return false;
  const finding = ruling ?? (outcome && FINDINGS[outcome]);
  return finding === null || name !== 'undeclared_automation' ? null : finding !== 'mistaken';
}

/** All decisions of a tenant, by the rules that fired: a short read a page, and a row a pattern in memory. */
export async function readPatterns({ read }: Database, kid: string): Promise<readonly Pattern[]> {
  const found = new Map<string, Pattern>();
  const decisions = read('decisions as d')
    .joinRaw('LEFT JOIN decision_outcomes o ON o.kid = d.kid AND o.request_id = d.request_id')
    .joinRaw('LEFT JOIN contests c ON c.kid = d.kid AND c.request_id = d.request_id')
    .where('d.kid', kid)
    .select('d.request_id', 'd.verdict', { outcome: 'o.outcome', ruling: 'c.outcome' });
  for await (const rows of pagesOf<Row>(unmarked(decisions, 'd'), ['d.request_id'], PAGE))
    for (const row of rows) {
      const verdict = JSON.parse(row.verdict) as Verdict;
      const { incomplete } = verdict;
      const rules = verdict.rules.map(({ id }) => id).sort();
      const decided = verdict.declaredAgentId !== null || verdict.overridden ? verdict.class : null;
      const fixed = row.ruling === 'overturned' ? 'human' : decided;
      const key = JSON.stringify([rules, incomplete, fixed]);
      const { decisions: n = 0, right = 0, wrong = 0 } = found.get(key) ?? {};
      const finding = isRight(row, verdict);
      const counts = { right: right + Number(finding === true), wrong: wrong + Number(finding === false) };
      found.set(key, { rules, incomplete, fixed, decisions: n + 1, ...counts });
    }
  return [...found.values()];
}
