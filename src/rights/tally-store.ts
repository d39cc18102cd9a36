import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { lockTenant } from '../db/meta-store.ts';
import { cellOf } from '../db/sql.ts';
import type { Verdict } from '../ingest/verdict/verdict.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import { floorHour } from '../log/fold.ts';
import type { ContestOutcome } from '../schema/rights.ts';

/** Counts by hour for the overview. Each row is counted once, by a job, and what is erased later stays counted. */

export type TallyKind = 'verdict' | 'consent';

/** Who asked for the banner, and what was judged, since then. */
export async function readVisits(database: Database, kid: string, from: number) {
  const rows = await readTallies(database, kid, 'visit', from);
  const sumOf = (name: string): number =>
    rows.reduce((sum, row) => sum + (row.name === name ? Number(row.n) : 0), 0);
  return { all: sumOf('all'), gpc: sumOf('gpc'), judged: sumOf('judged'), workerless: sumOf('workerless') };
}

/** A batch that was stamped before may commit a little later. */
const LATE_MS = MINUTE;
/** Rows a step: short reads, and a short transaction. */
const STEP = 5000;
/** An installation that never counted begins this far back. */
const FIRST_DAYS = 31;
const KEEP_DAYS = 400;

export interface TallyRow {
  readonly hour: number;
  readonly name: string;
  readonly n: number;
}

interface Batch {
  /** Where the next one begins. */
  readonly upto: number;
  readonly counts: readonly TallyRow[];
  readonly full: boolean;
}

function group(rows: readonly { readonly at: number; readonly name: string }[]): Batch['counts'] {
  const counts = new Map<string, TallyRow>();
  for (const { at, name } of rows) {
    const hour = floorHour(Number(at));
    const key = `${hour} ${name}`;
    counts.set(key, { hour, name, n: (counts.get(key)?.n ?? 0) + 1 });
  }
  return [...counts.values()];
}

/** Verdicts in (mark, now - LATE_MS], by their time; those of one moment are never cut apart. */
async function verdictBatch(db: Knex, kid: string, mark: number, now: number): Promise<Batch> {
  const until = now - LATE_MS;
  const from = Math.max(mark, now - FIRST_DAYS * DAY);
  const since = (): Knex.QueryBuilder => db('decisions').where({ kid }).where('decided_at', '>', from);
  const due = since().where('decided_at', '<=', until).orderBy('decided_at');
  const edge = await cellOf<number>(due.offset(STEP), 'decided_at');
  const upto = edge ?? until;
  const rows = (await since()
    .where('decided_at', '<=', upto)
    .select({ at: 'decided_at', name: 'class' })) as { at: number; name: string }[];
  return { upto: Math.max(upto, mark), counts: group(rows), full: edge !== undefined };
}

/** Consent by its place in the log, which only grows. */
async function consentBatch(db: Knex, kid: string, mark: number): Promise<Batch> {
  const rows = (await db('consent_openings')
    .where({ kid })
    .where('seq', '>', mark)
    .orderBy('seq')
    .limit(STEP)
    .select('seq', 'at', { name: 'choice' })) as { seq: number; at: number; name: string }[];
  const upto = rows.length === 0 ? mark : Number(rows.at(-1)?.seq);
  return { upto, counts: group(rows), full: rows.length === STEP };
}

async function markOf(db: Knex, kid: string, kind: TallyKind): Promise<number> {
  return (await cellOf<number>(db('tally_marks').where({ kid, kind }), 'upto')) ?? -1;
}

/** One step. Two nodes at once: the mark that moved in between makes the second one's step void. */
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

/** Counts what is new, and deletes counts that are too old. */
export async function tally(database: Database, kid: string, now: number): Promise<void> {
  for (const kind of ['verdict', 'consent'] as const) {
    while (await tallyStep(database, kid, kind, now));
  }
  await database.transaction((tx) =>
    tx('tallies')
      .where({ kid })
      .whereIn('kind', ['verdict', 'consent', 'visit'])
      .where('hour', '<', now - KEEP_DAYS * DAY)
      .delete(),
  );
}

export async function readTallies(database: Database, kid: string, kind: TallyKind | 'visit', from: number) {
  return (await database
    .read('tallies')
    .where({ kid, kind })
    .where('hour', '>=', from)
    .orderBy('hour')
    .select('hour', 'name', 'n')) as TallyRow[];
}

/** Until when verdicts are counted; null: never yet. */
export async function talliedUntil(database: Database, kid: string): Promise<number | null> {
  const mark = await markOf(database.read, kid, 'verdict');
  return mark < 0 ? null : mark;
}

/** What a ruling, or a reported outcome, says of the rules of a decision. */
export type Finding = ContestOutcome | 'confirmed' | 'mistaken';
const FINDINGS: readonly Finding[] = ['upheld', 'overturned', 'confirmed', 'mistaken'];

export type RuleReview = Readonly<Record<Finding, number>> & { readonly rule: string };

/**
 * Counts a finding under every rule that had fired, or takes it back. Rules were right, or reported as wrong, of automation alone.
 * @param tx that of the ruling or of the report
 */
export async function countReview(
  tx: Knex.Transaction,
  kid: string,
  requestId: string,
  finding: Finding,
  step: 1 | -1 = 1,
): Promise<void> {
  const text = await cellOf<string>(tx('decisions').where({ kid, request_id: requestId }), 'verdict');
  const verdict = text === undefined ? null : (JSON.parse(text) as Verdict);
  if (finding !== 'overturned' && verdict?.class !== 'undeclared_automation') return;
  // In one order, so that two transactions do not wait for each other.
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
