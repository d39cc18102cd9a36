import { randomInt } from 'node:crypto';
import type { Knex } from 'knex';
import type { RecordEntry, Recorded } from '../ingest/ports.ts';
import {
  byText,
  countBy,
  decisionRows,
  indexRows,
  markRows,
  shadowRows,
  sightingRows,
} from './ingest-rows.ts';
import { type Bindings, hasRowLocks, insertInto, insertMany, makeInserts } from './sql.ts';
import { type SummaryEntry, writeSummaries } from './summary-store.ts';
import { readTimeMarks } from './time-marks.ts';
import { enqueue, type OutboxEntry } from './webhook-store.ts';

/** Which entries won their nonce; of two in one batch the first does. */
async function claimNonces(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<boolean[]> {
  const rows = entries.map((entry): Bindings => [entry.kid, entry.nonce, entry.nonceExpiresAt]);
  rows.sort(byText(1));
  const claimed = await insertMany<{ kid: string; nonce: string }>(
    tx,
    'INSERT INTO nonces (kid, nonce, expires_at)',
    rows,
    'ON CONFLICT DO NOTHING RETURNING kid, nonce',
  );
  const free = new Set(claimed.map((row) => `${row.kid}|${row.nonce}`));
  return entries.map((entry) => free.delete(`${entry.kid}|${entry.nonce}`));
}

interface Mark {
  readonly kid: string;
  readonly durable: string;
  readonly day: number;
}

/** Nodes add to a shard of their own choice, so that a tenant's total is no queue. */
const SHARDS = 8;
const shard = randomInt(SHARDS);

/** Another node may have marked some of them since they were looked up: those are counted already. */
async function claimMarks(tx: Knex.Transaction, rows: readonly Bindings[]): Promise<readonly Mark[]> {
  const head = 'INSERT INTO network_marks (kid, durable, day, network)';
  return insertMany<Mark>(tx, head, rows, 'ON CONFLICT DO NOTHING RETURNING kid, durable, day');
}

const toMark = ([kid, durable, day]: Bindings): Mark => ({
  kid: String(kid),
  durable: String(durable),
  day: Number(day),
});

const writeRows = makeInserts('ingest_rows', [
  insertInto(
    'sightings',
    ['kid', 'durable', 'first_at', 'last_at', 'seen', 'epoch'],
    `ON CONFLICT (kid, durable) DO UPDATE SET seen = sightings.seen + excluded.seen,
      last_at = CASE WHEN excluded.last_at > sightings.last_at THEN excluded.last_at ELSE sightings.last_at END,
      epoch = CASE WHEN excluded.epoch > sightings.epoch THEN excluded.epoch ELSE sightings.epoch END`,
  ),
  insertInto('visitor_index', ['kid', 'visitor_id', 'durable', 'epoch'], 'ON CONFLICT DO NOTHING'),
  insertInto('network_marks', ['kid', 'durable', 'day', 'network'], 'ON CONFLICT DO NOTHING'),
  insertInto(
    'network_days',
    ['kid', 'durable', 'day', 'networks'],
    'ON CONFLICT (day, kid, durable) DO UPDATE SET networks = network_days.networks + excluded.networks',
  ),
  insertInto(
    'network_totals',
    ['kid', 'day', 'shard', 'pairs'],
    'ON CONFLICT (kid, day, shard) DO UPDATE SET pairs = network_totals.pairs + excluded.pairs',
  ),
  insertInto(
    'shadow_counts',
    ['kid', 'day', 'policy_version', 'live_class', 'shadow_class', 'verdicts'],
    `ON CONFLICT (kid, day, policy_version, live_class, shadow_class)
      DO UPDATE SET verdicts = shadow_counts.verdicts + excluded.verdicts`,
  ),
  insertInto('decisions', [
    'kid',
    'request_id',
    'decided_at',
    'class',
    'durable',
    'verdict',
    'salt',
    'commitment',
  ]),
]);

/** Sightings, index entries, networks of a device with the counts that outlive their marks, and decisions. */
async function writeAccepted(
  tx: Knex.Transaction,
  entries: readonly RecordEntry[],
  sealedTo: (kid: string) => number,
): Promise<void> {
  const marks = markRows(entries);
  const shared = hasRowLocks(tx);
  const fresh = shared ? await claimMarks(tx, marks) : marks.map(toMark);
  await writeRows(tx, [
    sightingRows(entries),
    indexRows(entries),
    shared ? [] : marks,
    countBy(fresh, ({ kid, durable, day }) => [kid, durable, day]).sort(byText(1)),
    countBy(fresh, ({ kid, day }) => [kid, day, shard]).sort(byText(0)),
    shadowRows(entries),
    decisionRows(entries, sealedTo),
  ]);
}

/** A tenant's webhooks are told of the decision by its id alone. */
function outboxEntries(entries: readonly RecordEntry[]): OutboxEntry[] {
  return entries.flatMap(({ kid, verdict, webhooks }) =>
    webhooks.map((webhook) => ({
      kid,
      webhook,
      event: 'decision.recorded' as const,
      requestId: verdict.requestId,
      principal: null,
      sealed: null,
      at: verdict.decidedAt,
    })),
  );
}

function summariesOf(entries: readonly RecordEntry[]): SummaryEntry[] {
  return entries.flatMap(({ kid, verdict, summary }) =>
    summary ? [{ kid, requestId: verdict.requestId, request: summary }] : [],
  );
}

/** Claims each nonce and writes what won its own: whole, or not at all. */
export async function writeEntries(
  tx: Knex.Transaction,
  entries: readonly RecordEntry[],
): Promise<Recorded[]> {
  const won = await claimNonces(tx, entries);
  // After the claims: what another node forgets meanwhile, they waited for.
  const { forgotten, sealed } = await readTimeMarks(
    tx,
    entries.map(({ kid }) => kid),
  );
  const outcomes = entries.map((entry, i): Recorded => {
    if (won[i] !== true) return 'replay';
    return entry.earliestExpiry < forgotten ? 'stale' : entry;
  });
  const accepted = entries.filter((entry, i) => outcomes[i] === entry);
  if (accepted.length > 0) {
    await writeAccepted(tx, accepted, sealed);
    await writeSummaries(tx, summariesOf(accepted));
    await enqueue(tx, outboxEntries(accepted));
  }
  return outcomes;
}
