import { randomInt } from 'node:crypto';
import { readTimeMarks, type TimeMarks } from '../db/clock-rule-store.ts';
import {
  type Bindings,
  type Cells,
  type HotTransaction,
  hasRowLocks,
  insertInto,
  insertMany,
  makeInserts,
  type Read,
  runHot,
} from '../db/sql.ts';
import { enqueue, type OutboxEntry } from '../notify/outbox.ts';
import type { NonceClaim, RecordEntry, Recorded } from './ports.ts';
import {
  countBy,
  decisionRows,
  indexRows,
  markRows,
  nonceRows,
  type SummaryEntry,
  shadowRows,
  sightingRows,
  writeSummaries,
  writeUpdates,
} from './stored.ts';

export interface Claims {
  /** Which claims are a nonce's first, of a tenant that is there or not; of two in one batch the first is. */
  readonly won: readonly boolean[];
  /** Of a moment at which no other node could forget one of these nonces any more. */
  readonly marks: TimeMarks;
}

const idOf = (kid: string, nonce: string): string => `${kid}|${nonce}`;

/** A claim is a row: another node that has the same nonce waits for this transaction. */
export async function claimRows(tx: HotTransaction, claims: readonly NonceClaim[]): Promise<Claims> {
  const head = 'INSERT INTO nonces (kid, nonce, dated_at)';
  const tail = 'ON CONFLICT DO NOTHING RETURNING kid, nonce';
  const claimed = await insertMany<{ kid: string; nonce: string }>(tx, head, nonceRows(claims), tail);
  const free = new Set(claimed.map(({ kid, nonce }) => idOf(kid, nonce)));
  const won = claims.map(({ kid, nonce }) => free.delete(idOf(kid, nonce)));
  // After the claims: what another node forgets meanwhile, they waited for.
  const kids = claims.map(({ kid }) => kid);
  const marks = await readTimeMarks(tx, kids);
  for (const [i, claim] of claims.entries()) {
    if (won[i] && !isOfTenant(claim, marks))
      await runHot(tx, 'DELETE FROM nonces WHERE kid = ? AND nonce = ?', [claim.kid, claim.nonce]);
  }
  return { won, marks };
}

/** Whether the tenant of the bundle is there, and not another that was made under its kid since. */
const isOfTenant = ({ kid, since }: NonceClaim, marks: TimeMarks): boolean => marks.since(kid) === since;

/** Which of these nonces were claimed. */
export const TAKEN: Read = {
  about: { kid: 'text', nonce: 'text' },
  sql: 'SELECT n.kid AS kid, n.nonce AS nonce FROM q JOIN nonces n ON n.kid = q.kid AND n.nonce = q.nonce',
  columns: ['kid', 'nonce'],
};

/** What {@link TAKEN} is asked about. */
export const askedNonces = (claims: readonly NonceClaim[]): Bindings[] =>
  claims.map(({ kid, nonce }) => [kid, nonce]);

/**
 * Where nobody else writes meanwhile: what is free is won, and its row may be written later.
 * @param taken cells of {@link TAKEN}
 */
export function claimFree(claims: readonly NonceClaim[], taken: readonly Cells[]): boolean[] {
  const gone = new Set(taken.map(([kid, nonce]) => idOf(String(kid), String(nonce))));
  return claims.map(({ kid, nonce }) => {
    const isFree = !gone.has(idOf(kid, nonce));
    gone.add(idOf(kid, nonce));
    return isFree;
  });
}

/** A bundle that was decided. */
export interface Decided {
  readonly claim: NonceClaim;
  readonly entry: RecordEntry;
}

interface Mark {
  readonly kid: string;
  readonly durable: string;
  readonly day: number;
}

/** Each node adds to a shard that it picks, so that writers of a tenant's total do not queue. */
const SHARDS = 8;
const shard = randomInt(SHARDS);

/** Another node may have marked some of them since they were looked up: those are counted already. */
async function claimMarks(tx: HotTransaction, rows: readonly Bindings[]): Promise<readonly Mark[]> {
  const head = 'INSERT INTO network_marks (kid, durable, day, network)';
  return insertMany<Mark>(tx, head, rows, 'ON CONFLICT DO NOTHING RETURNING kid, durable, day');
}

const toMark = ([kid, durable, day]: Bindings): Mark => ({
  kid: String(kid),
  durable: String(durable),
  day: Number(day),
});

/** A count that is added to the one which the key has. */
const addTo = (table: string, key: readonly string[], count: string) => {
  const sum = `${count} = ${table}.${count} + excluded.${count}`;
  return insertInto(table, [...key, count], `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${sum}`);
};

const writeRows = makeInserts('ingest_rows', [
  insertInto('nonces', ['kid', 'nonce', 'dated_at']),
  insertInto(
    'sightings',
    ['kid', 'durable', 'first_at', 'last_at', 'seen'],
    `ON CONFLICT (kid, durable) DO UPDATE SET seen = sightings.seen + excluded.seen,
      last_at = CASE WHEN excluded.last_at > sightings.last_at THEN excluded.last_at ELSE sightings.last_at END`,
  ),
  insertInto('visitor_index', ['kid', 'visitor_id', 'durable', 'epoch', 'ends_at'], 'ON CONFLICT DO NOTHING'),
  insertInto('network_marks', ['kid', 'durable', 'day', 'network'], 'ON CONFLICT DO NOTHING'),
  addTo('network_days', ['kid', 'durable', 'day'], 'networks'),
  addTo('network_totals', ['kid', 'day', 'shard'], 'pairs'),
  addTo('shadow_counts', ['kid', 'day', 'policy_version', 'live_class', 'shadow_class'], 'verdicts'),
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

/** A tenant's webhooks get only the decision's id. */
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

/** Entries of a batch were decided before any of them was written: a device and its network of the day count once. */
function summariesOf(entries: readonly RecordEntry[]): SummaryEntry[] {
  const counted = new Set<string>();
  const isFirst = (...key: readonly unknown[]): boolean => {
    const name = key.join('|');
    return !counted.has(name) && counted.add(name) !== undefined;
  };
  return entries.flatMap(({ kid, verdict, summary, identified }) => {
    if (!summary) return [];
    const { requestId } = verdict;
    if (!identified) return [{ kid, requestId, request: summary }];
    const { durable, network, day } = identified;
    const newDevice = summary.newDevice && isFirst(kid, durable);
    const counts = summary.counts && isFirst(kid, durable, day, network);
    return [{ kid, requestId, request: { ...summary, newDevice, counts } }];
  });
}

/**
 * Nonces that are not written yet, sightings, index entries, networks of a device with the counts that outlive their
 * marks, decisions, and what is kept and told of them.
 */
async function writeAccepted(
  tx: HotTransaction,
  accepted: readonly Decided[],
  anchoredTo: (kid: string) => number,
): Promise<void> {
  const entries = accepted.map(({ entry }) => entry);
  const marks = markRows(entries);
  const shared = hasRowLocks(tx);
  const fresh = shared ? await claimMarks(tx, marks) : marks.map(toMark);
  await writeRows(tx, [
    shared ? [] : nonceRows(accepted.map(({ claim }) => claim)),
    sightingRows(entries),
    indexRows(entries),
    shared ? [] : marks,
    countBy(fresh, ({ kid, durable, day }) => [kid, durable, day]),
    countBy(fresh, ({ kid, day }) => [kid, day, shard]),
    shadowRows(entries),
    decisionRows(entries, anchoredTo),
  ]);
  await writeSummaries(tx, summariesOf(entries));
  await writeUpdates(tx, entries);
  await enqueue(tx, outboxEntries(entries));
}

/** Writes what won its nonce, of tenants that are there: whole, or not at all. */
export async function writeDecided(tx: HotTransaction, decided: readonly Decided[], { won, marks }: Claims) {
  const outcomes = decided.map(({ claim, entry }, i): Recorded => {
    if (!isOfTenant(claim, marks)) return 'gone';
    if (won[i] !== true) return 'replay';
    return claim.datedAt < marks.forgotten ? 'stale' : entry;
  });
  const accepted = decided.filter(({ entry }, i) => outcomes[i] === entry);
  if (accepted.length > 0) await writeAccepted(tx, accepted, marks.anchored);
  return outcomes;
}
