import { FORGOTTEN, keepNoncesFrom } from '../db/clock-rule-store.ts';
import type { Database } from '../db/engine.ts';
import { createGroup, oneTenant } from '../db/group-commit.ts';
import { REMOVING } from '../db/meta-store.ts';
import { type Bindings, insertMany, lockClause, runSql, sendTogether, type Transaction } from '../db/sql.ts';
import { commitVerdict } from '../ledger/entries.ts';
import { MINUTE, SECOND } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import { enqueue } from '../notify/outbox-store.ts';
import type { Installation } from '../tenants/directory.ts';
import { purgeNonces } from './decisions-store.ts';
import {
  addCounts,
  countNetworks,
  createTotals,
  lookUpDevices,
  pairOf,
  purgeNetworks,
  type ReadTotal,
} from './devices-store.ts';
import type { NonceClaim, RecordEntry, Recorded, Recorder, Sighting } from './ports.ts';
import { purgeSummaries, writeSummaries } from './summary-store.ts';
import type { KnownDevice } from './verdict/identity.ts';
import { storedClass } from './verdict/verdict.ts';

/**
 * Reads and writes of accepted bundles, one transaction for all that wait (group commit): claim the nonces,
 * lock the tenant, look the devices up, let each bundle decide on that, write. Every statement is of one
 * tenant.
 */

/** Both databases limit the parameters of a statement: 8 columns × 400 rows stays far below 65,535. */
const MAX_BATCH = 400;
/** A second limit; the limit of the route is lower. */
const MAX_WAITING = 2000;

/** @param monotonic milliseconds that no change of the clock touches */
export function createRecorder(database: Database, monotonic: () => number) {
  const readTotal = createTotals(monotonic);
  const group = createGroup<Sighting, Recorded>({
    name: 'record',
    run: (sightings) => database.transaction((tx) => recordAll(tx, readTotal, sightings)),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    ...oneTenant(database.kind, ({ claim }: Sighting) => claim.kid),
  });
  const record: Recorder['record'] = (sighting) => group.submit(sighting);
  return { record, idle: () => group.idle() };
}

/**
 * Records one sighting in a separate transaction together with `also`; if `also` throws, nothing is written.
 */
export type RecordAlone = (sighting: Sighting, also: (tx: Transaction) => Promise<void>) => Promise<Recorded>;

export function createRecordAlone(database: Database, monotonic: () => number): RecordAlone {
  const readTotal = createTotals(monotonic);
  return (sighting, also) =>
    database.transaction(async (tx) => {
      const [recorded] = (await recordAll(tx, readTotal, [sighting])) as [Recorded];
      if (typeof recorded !== 'string') await also(tx);
      return recorded;
    });
}

/** A batch is of one tenant on PostgreSQL; on SQLite tenants share the commit. */
async function recordAll(
  tx: Transaction,
  readTotal: ReadTotal,
  sightings: readonly Sighting[],
): Promise<Recorded[]> {
  const recorded = new Map<Sighting, Recorded>();
  for (const kid of new Set(sightings.map(({ claim }) => claim.kid))) {
    const tenantSightings = sightings.filter(({ claim }) => claim.kid === kid);
    await recordTenant(tx, readTotal, kid, tenantSightings, recorded);
  }
  return sightings.map((sighting) => recorded.get(sighting) as Recorded);
}

/** @param recorded gets the result of each sighting */
async function recordTenant(
  tx: Transaction,
  readTotal: ReadTotal,
  kid: string,
  sightings: readonly Sighting[],
  recorded: Map<Sighting, Recorded>,
): Promise<void> {
  const claims = sightings.map(({ claim }) => claim);
  const devices = sightings.flatMap(({ device }) => device ?? []);
  // The tenant is read after the claims, which wait for a node that deletes nonces meanwhile.
  const [isFirst, { since, anchoredTo, forgotten }, known] = await sendTogether(
    () => claimNonces(tx, kid, claims),
    () => lockTenant(tx, kid),
    () => lookUpDevices(tx, readTotal, devices),
  );
  const lostClaims = claims.filter((claim, i) => isFirst[i] && claim.since !== since);
  await deleteClaims(tx, kid, lostClaims);
  const entries: RecordEntry[] = [];
  for (const [i, sighting] of sightings.entries()) {
    const { claim, device, decide } = sighting;
    const knownDevice = device && (known.shift() as KnownDevice);
    if (claim.since !== since) recorded.set(sighting, 'gone');
    else if (!isFirst[i]) recorded.set(sighting, 'replay');
    else if (claim.datedAt < forgotten) recorded.set(sighting, 'stale');
    else {
      // If one throws, the batch is rolled back and runs again in halves until that one is alone.
      const entry = decide(knownDevice);
      recorded.set(sighting, entry);
      entries.push(entry);
    }
  }

  await writeEntries(tx, kid, entries, anchoredTo);
}

/** The tenant is not removed until the transaction ends. `since` is null if it is removed or in removal. */
async function lockTenant(tx: Transaction, kid: string) {
  const sql = `SELECT t.created_at AS since, h.verdicts_sealed_to AS anchored, m.value AS forgotten
    FROM tenants t LEFT JOIN ledger_heads h ON h.kid = ? LEFT JOIN meta m ON m.name = '${FORGOTTEN}'
    WHERE t.kid = ? AND t.revision > ${REMOVING} ${lockClause(tx, 'FOR KEY SHARE OF t')}`;
  const [row] = await runSql<Readonly<Record<'since' | 'anchored' | 'forgotten', unknown>>>(tx, sql, [
    kid,
    kid,
  ]);
  return {
    since: row ? Number(row.since) : null,
    /** A row never gets the time of an anchored hour, even when a clock went back. */
    anchoredTo: Number(row?.anchored ?? 0),
    /** The nonces of bundles with an earlier time may be deleted already. */
    forgotten: Number(row?.forgotten ?? Number.NEGATIVE_INFINITY),
  };
}

/** All nodes sort rows by the second column, so that batches do not deadlock on PostgreSQL. */
const inOrder = (rows: Iterable<Bindings>): Bindings[] =>
  [...rows].sort((a, b) => (String(a[1]) < String(b[1]) ? -1 : 1));

/**
 * A claim is a row: another node with the same nonce waits for this transaction.
 * @returns for each claim, true if it is the first of its nonce
 */
async function claimNonces(tx: Transaction, kid: string, claims: readonly NonceClaim[]) {
  const rows = claims.map(({ nonce, datedAt }): Bindings => [kid, nonce, datedAt]);
  const head = 'INSERT INTO nonces (kid, nonce, dated_at)';
  const tail = 'ON CONFLICT DO NOTHING RETURNING nonce';
  const claimed = await insertMany<{ nonce: string }>(tx, head, inOrder(rows), tail);
  const free = new Set(claimed.map(({ nonce }) => nonce));
  return claims.map(({ nonce }) => free.delete(nonce));
}

/** A later tenant with the same kid would inherit the rows of a removed one. */
async function deleteClaims(tx: Transaction, kid: string, claims: readonly NonceClaim[]) {
  for (const { nonce } of claims)
    await runSql(tx, 'DELETE FROM nonces WHERE kid = ? AND nonce = ?', [kid, nonce]);
}

// The writes of a batch. A device counts once per batch, and so does its network of a day: all entries were
// decided before any is written.

async function writeEntries(
  tx: Transaction,
  kid: string,
  entries: readonly RecordEntry[],
  anchoredTo: number,
): Promise<void> {
  const [newDevices, newPairs] = await sendTogether(
    () => writeSightings(tx, kid, entries),
    () => countNetworks(tx, kid, entries),
    () => writeVisitorIds(tx, kid, entries),
    () => countShadows(tx, kid, entries),
    () => writeDecisions(tx, kid, entries, anchoredTo),
    () => enqueue(tx, entries.flatMap(outboxEntries)),
  );
  await writeSummaries(tx, kid, summariesOf(entries, newDevices, newPairs));
  await writeUpdates(tx, kid, entries);
}

/**
 * Writes one row per device, because PostgreSQL refuses to update a row twice in one statement.
 * @returns the devices that were never seen before
 */
async function writeSightings(tx: Transaction, kid: string, entries: readonly RecordEntry[]) {
  const devices = new Map<string, { first: number; last: number; seen: number }>();
  for (const { identified, verdict } of entries) {
    if (!identified) continue;
    const at = verdict.decidedAt;
    const { first, last, seen } = devices.get(identified.durable) ?? { first: at, last: at, seen: 0 };
    const now = { first: Math.min(first, at), last: Math.max(last, at), seen: seen + 1 };
    devices.set(identified.durable, now);
  }
  const rows = [...devices].map(([durable, { first, last, seen }]): Bindings => {
    return [kid, durable, first, last, seen];
  });
  const storedRows = await insertMany<{ durable: string; seen: number }>(
    tx,
    'INSERT INTO sightings (kid, durable, first_at, last_at, seen)',
    inOrder(rows),
    `ON CONFLICT (kid, durable) DO UPDATE SET seen = sightings.seen + excluded.seen,
      last_at = CASE WHEN excluded.last_at > sightings.last_at THEN excluded.last_at ELSE sightings.last_at END
      RETURNING durable, seen`,
  );
  const isNew = ({ durable, seen }: { durable: string; seen: number }): boolean =>
    seen === devices.get(durable)?.seen;
  return new Set(storedRows.filter(isNew).map(({ durable }) => durable));
}

/** Every visit writes its visitorId, because a device seen in this epoch may be missing in the index. */
async function writeVisitorIds(tx: Transaction, kid: string, entries: readonly RecordEntry[]) {
  const rows = new Map<string, Bindings>();
  for (const { identified } of entries) {
    if (!identified) continue;
    const { visitorId, durable, epoch, epochEndsAt } = identified;
    rows.set(visitorId, [kid, visitorId, durable, epoch, epochEndsAt]);
  }
  const head = 'INSERT INTO visitor_index (kid, visitor_id, durable, epoch, ends_at)';
  await insertMany(tx, head, inOrder(rows.values()), 'ON CONFLICT DO NOTHING');
}

/** Counts how often the shadow policy agrees and how often it does not. */
async function countShadows(tx: Transaction, kid: string, entries: readonly RecordEntry[]) {
  const counted = entries.flatMap(({ shadow, verdict }): Bindings[] =>
    shadow ? [[kid, shadow.day, shadow.policyVersion, verdict.class, shadow.class]] : [],
  );
  const key = ['kid', 'day', 'policy_version', 'live_class', 'shadow_class'];
  await addCounts(tx, 'shadow_counts', key, 'verdicts', counted);
}

async function writeDecisions(
  tx: Transaction,
  kid: string,
  entries: readonly RecordEntry[],
  anchoredTo: number,
): Promise<void> {
  const rows = entries.map(({ verdict, salt }): Bindings => {
    const { requestId, decidedAt, durable } = verdict;
    const text = JSON.stringify(verdict);
    const commitment = commitVerdict(Buffer.from(salt, 'base64url'), kid, requestId, text);
    const at = Math.max(decidedAt, anchoredTo);
    return [kid, requestId, at, storedClass(verdict), durable, text, salt, commitment];
  });
  const columns = 'kid, request_id, decided_at, class, durable, verdict, salt, commitment';
  await insertMany(tx, `INSERT INTO decisions (${columns})`, rows);
}

/**
 * Records which decision each bundle supersedes, unless that decision was erased meanwhile or is superseded
 * already.
 */
async function writeUpdates(tx: Transaction, kid: string, entries: readonly RecordEntry[]) {
  for (const { after, verdict } of entries) {
    if (after === undefined) continue;
    await runSql(
      tx,
      `INSERT INTO decision_updates (kid, earlier, request_id)
        SELECT kid, request_id, ? FROM decisions WHERE kid = ? AND request_id = ? ON CONFLICT DO NOTHING`,
      [verdict.requestId, kid, after],
    );
  }
}

/** A device and its network count once in the population, with the first of their entries. */
function summariesOf(
  entries: readonly RecordEntry[],
  newDevices: ReadonlySet<string>,
  newPairs: ReadonlySet<string>,
) {
  const counted = new Set<string>();
  const isFirst = (id: string): boolean => !counted.has(id) && counted.add(id) !== undefined;
  return entries.flatMap(({ verdict: { requestId }, summary, identified }) => {
    if (!summary) return [];
    const isNewDevice =
      identified !== null && newDevices.has(identified.durable) && isFirst(identified.durable);
    const isNewPair = identified !== null && newPairs.has(pairOf(identified)) && isFirst(pairOf(identified));
    return [{ requestId, request: summary, isNewDevice, isNewPair }];
  });
}

/** A tenant's webhooks get only the decision's id. */
const outboxEntries = ({ kid, verdict, webhooks }: RecordEntry) =>
  webhooks.map((webhook) => ({
    kid,
    webhook,
    event: 'decision.recorded' as const,
    requestId: verdict.requestId,
    principal: null,
    ciphertext: null,
    at: verdict.decidedAt,
  }));

/** Deletes what visits leave for a limited time: nonces, summaries of signals, and networks. */
export const ingestJobs = ({
  database,
  config,
}: Pick<Installation, 'database' | 'config'>): readonly Job[] => [
  {
    name: 'purge-nonces',
    every: MINUTE,
    run: ({ until }) => purgeNonces(database, keepNoncesFrom(until, config.max_clock_skew * SECOND)),
  },
  { name: 'purge-summaries', every: MINUTE, run: ({ until }) => purgeSummaries(database, until) },
  { name: 'purge-networks', every: MINUTE, run: ({ until }) => purgeNetworks(database, until) },
];
