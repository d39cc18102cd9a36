import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { hasRowLocks } from '../db/sql.ts';
import { holdTenant } from '../db/tenant-hold.ts';
import { unmarked } from '../ingest/erasing-store.ts';
import type { ReportedOutcome } from '../schema/responses.ts';
import type { Outcome } from '../schema/rights.ts';
import { countReview, type Finding } from './tally-store.ts';

/** The outcome of a decision, as the tenant's backend reported it. A second report changes nothing. */

interface Stored {
  readonly outcome: ReportedOutcome;
  readonly at: number;
}

export interface Report extends Stored {
  readonly kid: string;
  readonly requestId: string;
}

/** What it says of the rules, where they said automation. */
export const FINDINGS: Readonly<Record<ReportedOutcome, Finding | null>> = {
  fraud: 'confirmed',
  chargeback: 'confirmed',
  'passed-step-up': 'mistaken',
  'false-alarm': 'mistaken',
  other: null,
};

/** On PostgreSQL the row stays as it is until the transaction ends, and one that another changes is waited for. */
async function cellKept(tx: Knex.Transaction, rows: Knex.QueryBuilder, column: string): Promise<unknown> {
  const row = await (hasRowLocks(tx) ? rows.forShare() : rows).first<object | undefined>({ cell: column });
  return row && 'cell' in row ? row.cell : undefined;
}

const outcomeOf = (tx: Knex.Transaction, kid: string, requestId: string) =>
  tx('decision_outcomes').where({ kid, request_id: requestId }).first<Stored | undefined>('outcome', 'at');

/** Null: there is no such decision. `created`: this report is the one that is stored. */
export function insertOutcome(database: Database, { kid, requestId, outcome, at }: Report) {
  const ids = { kid, request_id: requestId };
  return database.transaction(async (tx): Promise<(Stored & { readonly created: boolean }) | null> => {
    await holdTenant(tx, kid);
    const decision = unmarked(tx('decisions').where(ids), 'decisions');
    if ((await cellKept(tx, decision, 'request_id')) === undefined) return null;
    const rows = tx('decision_outcomes').insert({ ...ids, outcome, at });
    const inserted = await rows.onConflict(['kid', 'request_id']).ignore().returning('request_id');
    if (inserted.length === 0) {
      const stored = await outcomeOf(tx, kid, requestId);
      return stored ? { outcome: stored.outcome, at: Number(stored.at), created: false } : null;
    }
    // A ruling outweighs what was reported, and is counted alone.
    const ruled = (await cellKept(tx, tx('contests').where(ids), 'status')) === 'resolved';
    const finding = ruled ? null : FINDINGS[outcome];
    if (finding) await countReview(tx, kid, requestId, finding);
    return { outcome, at, created: true };
  });
}

/** Counts a ruling in place of what was reported before; in its transaction. */
export async function countRuling(tx: Knex.Transaction, kid: string, requestId: string, ruling: Outcome) {
  const reported = await outcomeOf(tx, kid, requestId);
  const finding = reported && FINDINGS[reported.outcome];
  if (finding) await countReview(tx, kid, requestId, finding, -1);
  await countReview(tx, kid, requestId, ruling);
}
