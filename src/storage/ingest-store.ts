import { randomInt } from 'node:crypto';
import type { Knex } from 'knex';
import type { RecordEntry, Recorded } from '../ingest/ports.ts';
import { commitVerdict } from '../ledger/commitment.ts';
import { type Bindings, insertMany } from './sql.ts';
import { type SummaryEntry, writeSummaries } from './summary-store.ts';
import { readTimeMarks } from './time-marks.ts';
import { enqueue, type OutboxEntry } from './webhook-store.ts';

/** One order of rows for all nodes keeps concurrent batches from deadlocking on PostgreSQL. */
function byText(column: number): (a: Bindings, b: Bindings) => number {
  return (a, b) => (String(a[column]) < String(b[column]) ? -1 : 1);
}

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

interface SightingGroup {
  readonly kid: string;
  readonly durable: string;
  epoch: number;
  first: number;
  last: number;
  seen: number;
}

/** One row a device: PostgreSQL refuses to update a row twice in one statement. */
function groupSightings(entries: readonly RecordEntry[]): SightingGroup[] {
  const groups = new Map<string, SightingGroup>();
  for (const { kid, identified, verdict } of entries) {
    if (!identified) continue;
    const { durable, epoch } = identified;
    const at = verdict.decidedAt;
    const group = groups.get(`${kid}|${durable}`);
    if (group) {
      group.first = Math.min(group.first, at);
      group.last = Math.max(group.last, at);
      group.seen += 1;
      group.epoch = Math.max(group.epoch, epoch);
    } else {
      groups.set(`${kid}|${durable}`, { kid, durable, epoch, first: at, last: at, seen: 1 });
    }
  }
  return [...groups.values()];
}

async function writeSightings(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const rows = groupSightings(entries).map(
    (group): Bindings => [group.kid, group.durable, group.first, group.last, group.seen, group.epoch],
  );
  rows.sort(byText(1));
  await insertMany(
    tx,
    'INSERT INTO sightings (kid, durable, first_at, last_at, seen, epoch)',
    rows,
    `ON CONFLICT (kid, durable) DO UPDATE SET seen = sightings.seen + excluded.seen,
      last_at = CASE WHEN excluded.last_at > sightings.last_at THEN excluded.last_at ELSE sightings.last_at END,
      epoch = CASE WHEN excluded.epoch > sightings.epoch THEN excluded.epoch ELSE sightings.epoch END`,
  );
}

async function writeIndex(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const rows: Bindings[] = [];
  for (const { kid, identified } of entries) {
    if (!identified || identified.indexed) continue;
    rows.push([kid, identified.visitorId, identified.durable, identified.epoch]);
  }
  rows.sort(byText(1));
  const head = 'INSERT INTO visitor_index (kid, visitor_id, durable, epoch)';
  await insertMany(tx, head, rows, 'ON CONFLICT DO NOTHING');
}

interface Mark {
  readonly kid: string;
  readonly durable: string;
  readonly day: number;
}

/** How many of `rows` share a key, as rows to be added up. */
function countBy<Row>(rows: readonly Row[], keyOf: (row: Row) => readonly (string | number)[]): Bindings[] {
  const counts = new Map<string, Bindings>();
  for (const row of rows) {
    const key = keyOf(row);
    const id = key.join('|');
    const known = counts.get(id);
    if (known) known[key.length] = Number(known[key.length]) + 1;
    else counts.set(id, [...key, 1]);
  }
  return [...counts.values()];
}

/** Nodes add to a shard of their own choice, so that a tenant's total is no queue. */
const SHARDS = 8;
const shard = randomInt(SHARDS);

/** Networks of a device: a mark a day and network, and the counts that outlive the marks. */
async function writeNetworks(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const rows: Bindings[] = [];
  for (const { kid, identified } of entries) {
    if (!identified || identified.marked) continue;
    rows.push([kid, identified.durable, identified.day, identified.network]);
  }
  rows.sort(byText(1));
  const head = 'INSERT INTO network_marks (kid, durable, day, network)';
  const fresh = await insertMany<Mark>(tx, head, rows, 'ON CONFLICT DO NOTHING RETURNING kid, durable, day');
  const days = countBy(fresh, ({ kid, durable, day }) => [kid, durable, day]);
  days.sort(byText(1));
  await insertMany(
    tx,
    'INSERT INTO network_days (kid, durable, day, networks)',
    days,
    'ON CONFLICT (day, kid, durable) DO UPDATE SET networks = network_days.networks + excluded.networks',
  );
  await insertMany(
    tx,
    'INSERT INTO network_totals (kid, day, shard, pairs)',
    countBy(fresh, ({ kid, day }) => [kid, day, shard]).sort(byText(0)),
    'ON CONFLICT (kid, day, shard) DO UPDATE SET pairs = network_totals.pairs + excluded.pairs',
  );
}

/** How often the shadow agrees and how often it does not. */
async function writeShadow(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const counted = entries.flatMap(({ kid, shadow, verdict }) => (shadow ? [{ kid, shadow, verdict }] : []));
  const rows = countBy(counted, ({ kid, shadow, verdict }) => [
    kid,
    shadow.day,
    shadow.policyVersion,
    verdict.class,
    shadow.class,
  ]);
  rows.sort((a, b) => (a.join('|') < b.join('|') ? -1 : 1));
  await insertMany(
    tx,
    'INSERT INTO shadow_counts (kid, day, policy_version, live_class, shadow_class, verdicts)',
    rows,
    `ON CONFLICT (kid, day, policy_version, live_class, shadow_class)
      DO UPDATE SET verdicts = shadow_counts.verdicts + excluded.verdicts`,
  );
}

/** @param sealedTo what is written now is no row of an hour that is sealed, whatever a clock that went back says */
async function writeDecisions(
  tx: Knex.Transaction,
  entries: readonly RecordEntry[],
  sealedTo: (kid: string) => number,
): Promise<void> {
  const rows = entries.map(({ kid, verdict, salt }): Bindings => {
    const text = JSON.stringify(verdict);
    const commitment = commitVerdict(Buffer.from(salt, 'base64url'), kid, verdict.requestId, text);
    return [
      kid,
      verdict.requestId,
      Math.max(verdict.decidedAt, sealedTo(kid)),
      verdict.class,
      verdict.durable,
      text,
      salt,
      commitment,
    ];
  });
  const head =
    'INSERT INTO decisions (kid, request_id, decided_at, class, durable, verdict, salt, commitment)';
  await insertMany(tx, head, rows);
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
    await writeSightings(tx, accepted);
    await writeIndex(tx, accepted);
    await writeNetworks(tx, accepted);
    await writeShadow(tx, accepted);
    await writeDecisions(tx, accepted, sealed);
    await writeSummaries(tx, summariesOf(accepted));
    await enqueue(tx, outboxEntries(accepted));
  }
  return outcomes;
}
