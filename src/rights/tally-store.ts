import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { lockTenant } from '../db/meta-store.ts';
import { cellOf } from '../db/sql.ts';
import { AT_DOOR, type Verdict } from '../ingest/verdict/verdict.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import { floorHour } from '../log/fold.ts';
import type { ContestOutcome } from '../schema/rights.ts';

/** Hourly counts for the console's overview. Each row is counted once, and stays counted after an erasure. */

export type TallyKind = 'verdict' | 'consent';

/** Counts requests of the banner and verdicts since `from` (epoch milliseconds). */
export async function readVisits(database: Database, kid: string, from: number) {
  const rows = await readTallies(database, kid, 'visit', from);
  const sumOf = (name: string): number =>
    rows.reduce((sum, row) => sum + (row.name === name ? Number(row.n) : 0), 0);
  return { all: sumOf('all'), gpc: sumOf('gpc'), judged: sumOf('judged'), workerless: sumOf('workerless') };
}

/** A batch of verdicts may commit this much later than the time on its rows. */
const LATE_MS = MINUTE;
/** Rows per step, so that reads and transactions are short. */
const STEP = 5000;
/** The first count of an installation begins this far back. */
const FIRST_DAYS = 31;
const KEEP_DAYS = 400;

export interface TallyRow {
  readonly hour: number;
  readonly name: string;
  readonly n: number;
}

interface Batch {
  /** The mark from which the next batch begins. */
  readonly upto: number;
  readonly counts: readonly TallyRow[];
  readonly full: boolean;
}

function countByHour(rows: readonly { readonly at: number; readonly name: string }[]): Batch['counts'] {
  const counts = new Map<string, TallyRow>();
  for (const { at, name } of rows) {
    const hour = floorHour(Number(at));
    const key = `${hour} ${name}`;
    counts.set(key, { hour, name, n: (counts.get(key)?.n ?? 0) + 1 });
  }
  return [...counts.values()];
}

/** Reads verdicts in (mark, now - LATE_MS] by their time, and never splits those of one millisecond. */
async function verdictBatch(db: Knex, kid: string, mark: number, now: number): Promise<Batch> {
  const newestAt = now - LATE_MS;
  const from = Math.max(mark, now - FIRST_DAYS * DAY);
  const newVerdicts = (): Knex.QueryBuilder =>
    db('decisions').where({ kid }).whereNot('class', AT_DOOR).where('decided_at', '>', from);
  const dueVerdicts = newVerdicts().where('decided_at', '<=', newestAt).orderBy('decided_at');
  const edge = await cellOf<number>(dueVerdicts.offset(STEP), 'decided_at');
  const lastAt = edge ?? newestAt;
  const rows = (await newVerdicts()
    .where('decided_at', '<=', lastAt)
    .select({ at: 'decided_at', name: 'class' })) as { at: number; name: string }[];
  return { upto: Math.max(lastAt, mark), counts: countByHour(rows), full: edge !== undefined };
}

/** Reads consent in the order of the log, whose numbers only grow. */
async function consentBatch(db: Knex, kid: string, mark: number): Promise<Batch> {
  const rows = (await db('consent_openings')
    .where({ kid })
    .where('seq', '>', mark)
    .orderBy('seq')
    .limit(STEP)
    .select('seq', 'at', { name: 'choice' })) as { seq: number; at: number; name: string }[];
  const lastSeq = rows.length === 0 ? mark : Number(rows.at(-1)?.seq);
  return { upto: lastSeq, counts: countByHour(rows), full: rows.length === STEP };
}

async function markOf(db: Knex, kid: string, kind: TallyKind): Promise<number> {
  return (await cellOf<number>(db('tally_marks').where({ kid, kind }), 'upto')) ?? -1;
}

/**
 * Runs one step. When two nodes run it at once, the mark that the first moved makes the second's step void.
 */
async function tallyStep(database: Database, kid: string, kind: TallyKind, now: number): Promise<boolean> {
  const mark = await markOf(database.read, kid, kind);
  const batch =
    kind === 'verdict'
      ? await verdictBatch(database.read, kid, mark, now)
      : await consentBatch(database.read, kid, mark);
  if (batch.upto === mark || (batch.counts.length === 0 && kind === 'consent')) return false;
  await database.transaction(async (tx) => {
    await lockTenant(tx, kid);
    await tx('tally_marks').insert({ kid, kind, upto: -1 }).onConflict(['kid', 'kind']).ignore();
    const moved = await tx('tally_marks').where({ kid, kind, upto: mark }).update({ upto: batch.upto });
    if (moved !== 1) return;
    for (const { hour, name, n } of batch.counts) {
      await tx('tallies')
        .insert({ kid, kind, hour, name, n })
        .onConflict(['kid', 'kind', 'hour', 'name'])
        .merge({ n: tx.raw('tallies.n + ?', [n]) });
    }
  });
  return batch.full;
}

/** Counts new rows, and deletes counts that are too old. */
export async function tally(database: Database, kid: string, now: number): Promise<void> {
  for (const kind of ['verdict', 'consent'] as const) {
    while (await tallyStep(database, kid, kind, now));
  }
  await database.transaction((tx) =>
    tx('tallies')
      .where({ kid })
      .whereIn('kind', ['verdict', 'consent', 'visit', 'agent'])
      .where('hour', '<', now - KEEP_DAYS * DAY)
      .delete(),
  );
}

export async function readTallies(
  database: Database,
  kid: string,
  kind: TallyKind | 'visit' | 'agent',
  from: number,
) {
  return (await database
    .read('tallies')
    .where({ kid, kind })
    .where('hour', '>=', from)
    .orderBy('hour')
    .select('hour', 'name', 'n')) as TallyRow[];
}

/** @returns the time until which verdicts are counted; null: none is counted yet */
export async function talliedUntil(database: Database, kid: string): Promise<number | null> {
  const mark = await markOf(database.read, kid, 'verdict');
  return mark < 0 ? null : mark;
}

/** The finding of a ruling, or of a reported outcome, about the rules of a decision. */
export type RuleFinding = ContestOutcome | 'confirmed' | 'mistaken';
const FINDINGS: readonly RuleFinding[] = ['upheld', 'overturned', 'confirmed', 'mistaken'];

export type RuleReview = Readonly<Record<RuleFinding, number>> & { readonly rule: string };

/**
 * Counts a finding under every rule that had fired, or takes it back. Only decisions that said automation
 * count, except overturned ones, which always count.
 * @param tx transaction of the ruling or of the report
 */
export async function countReview(
  tx: Knex.Transaction,
  kid: string,
  requestId: string,
  finding: RuleFinding,
  step: 1 | -1 = 1,
): Promise<void> {
  const text = await cellOf<string>(tx('decisions').where({ kid, request_id: requestId }), 'verdict');
  const verdict = text === undefined ? null : (JSON.parse(text) as Verdict);
  if (finding !== 'overturned' && verdict?.class !== 'undeclared_automation') return;
  // A fixed order keeps two transactions from waiting for each other.
  const rules = [...new Set(verdict?.rules.map(({ id }) => id))].sort();
  if (rules.length === 0) return;
  await tx('rule_reviews')
    .insert(rules.map((rule) => ({ kid, rule, upheld: 0, overturned: 0, [finding]: 1 })))
    .onConflict(['kid', 'rule'])
    .merge({ [finding]: tx.raw(`rule_reviews.${finding} + ?`, [step]) });
}

export async function ruleReviews(database: Database, kid: string): Promise<readonly RuleReview[]> {
  return (await database
    .read('rule_reviews')
    .where({ kid })
    .select('rule', ...FINDINGS)) as RuleReview[];
}
