import type { Knex } from 'knex';
import { raiseForgotten } from '../db/clock-rule-store.ts';
import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import {
  type Bindings,
  cellOf,
  type HotTransaction,
  insertMany,
  makeReads,
  rowsOf,
  runHot,
} from '../db/sql.ts';
import { commitVerdict } from '../ledger/entries.ts';
import { unlessRequestHeld } from './networks.ts';
import type { NonceClaim, RecordEntry, StoredSummary, SummaryRequest } from './ports.ts';

import type { Verdict } from './verdict/verdict.ts';

export type StoredDecision = NonNullable<Awaited<ReturnType<typeof findDecision>>>;

type DecisionRow = Readonly<Record<'verdict', string> & Record<'status' | 'outcome', string | null>>;

/** One verdict of one tenant; another tenant's looks like none. */
export async function findDecision(database: Database, kid: string, requestId: string) {
  const query = database
    .read('decisions as d')
    .leftJoin('contests as c', (join) => join.on('c.kid', 'd.kid').andOn('c.request_id', 'd.request_id'))
    .where({ 'd.kid': kid, 'd.request_id': requestId });
  const columns = ['d.verdict', 'c.status', 'c.outcome'];
  const row = await query.first<DecisionRow | undefined>(columns);
  if (!row) return null;
  return {
    verdict: JSON.parse(row.verdict) as Verdict,
    /** A contest is open: nobody should act on it (contract 6.2). */
    restricted: row.status === 'open',
    /** A reviewer found that the person is no automation. */
    overturned: row.outcome === 'overturned',
  };
}

/** Which tenant has this decision. Ids are unique over all tenants; asked for staff only, who get "not yours". */
export async function tenantOfDecision({ read }: Database, requestId: string): Promise<string | null> {
  const rows = read('decisions')
    .whereIn('kid', read('tenants').select('kid'))
    .where({ request_id: requestId });
  return (await cellOf<string>(rows, 'kid')) ?? null;
}

export async function hasDecisions({ read }: Database, kid: string): Promise<boolean> {
  return (await cellOf<string>(read('decisions').where({ kid }), 'request_id')) !== undefined;
}

/** What a contest, a link or an erasure needs to know of a decision. */
export async function decisionKey(db: Knex, kid: string, requestId: string) {
  const rows = db('decisions').where({ kid, request_id: requestId });
  const row = await rows.first<{ durable: string | null; class: string } | undefined>('durable', 'class');
  return row ? { requestId, durable: row.durable, class: row.class } : null;
}

/** Forgets the nonces of bundles that are dated before `from`, and notes that it did. Returns how many went. */
export function purgeNonces(database: Database, from: number): Promise<number> {
  const note = (tx: Knex.Transaction): Promise<void> => raiseForgotten(tx, from);
  return purge(database, 'nonces', ['kid', 'nonce'], (rows) => rows.where('dated_at', '<', from), note);
}

/** What a later bundle of the same session supersedes. */

/** One that was erased meanwhile, or superseded already, is left alone. */
export async function writeUpdates(tx: HotTransaction, entries: readonly RecordEntry[]): Promise<void> {
  for (const { kid, after, verdict } of entries) {
    if (after === undefined) continue;
    await runHot(
      tx,
      `INSERT INTO decision_updates (kid, earlier, request_id)
        SELECT kid, request_id, ? FROM decisions WHERE kid = ? AND request_id = ? ON CONFLICT DO NOTHING`,
      [verdict.requestId, kid, after],
    );
  }
}

export async function supersededBy({ read }: Database, kid: string, requestId: string) {
  const rows = read('decision_updates').where({ kid, earlier: requestId });
  return (await cellOf<string>(rows, 'request_id')) ?? null;
}

/** A longer chain is not made, so that one short query reads a whole one. */
export const MAX_UPDATES = 32;

type End = 'earlier' | 'request_id';

/** That request, then each that a step leads to: from an `earlier` to what superseded it, or back. */
async function walk({ read }: Database, kid: string, requestId: string, [from, to]: readonly [End, End]) {
  // A scalar subquery: PostgreSQL has no statistics of these columns, and might join by reading the whole table.
  const next = `SELECT ${to} FROM decision_updates WHERE kid = ? AND ${from} = chain.id`;
  const found: unknown = await read.raw(
    `WITH RECURSIVE chain(id, step) AS (
      SELECT CAST(? AS text), 0 UNION ALL
      SELECT (${next}), step + 1 FROM chain WHERE id IS NOT NULL AND step < ${MAX_UPDATES}
    ) SELECT id FROM chain WHERE id IS NOT NULL ORDER BY step`,
    [requestId, kid],
  );
  return rowsOf<{ readonly id: string }>(found).map(({ id }) => id);
}

/** What a right that is presented with this request reaches: it, and what superseded it. */
export const withLater = (database: Database, kid: string, requestId: string): Promise<string[]> =>
  walk(database, kid, requestId, ['earlier', 'request_id']);

/** Whether this request supersedes so many in a row that no other may supersede it. */
export async function endsChain(database: Database, kid: string, requestId: string): Promise<boolean> {
  return (await walk(database, kid, requestId, ['request_id', 'earlier'])).length > MAX_UPDATES;
}

/** Population counts by keyed hash, and what is kept of a request for the life of its token. */

/** Rows that count no value: devices, and how often values were counted at all. */
const DEVICES: Cell = { name: '*devices', value: '' };
const COUNTED: Cell = { name: '*counted', value: '' };
const JOINT = '*joint';

export interface SummaryEntry {
  readonly kid: string;
  readonly requestId: string;
  readonly request: SummaryRequest;
}

interface Cell {
  readonly name: string;
  readonly value: string;
}

const cellsOf = ({ signals, joint }: SummaryRequest): Cell[] => [...signals, { name: JOINT, value: joint }];

function counted(request: SummaryRequest): Cell[] {
  return [...(request.newDevice ? [DEVICES] : []), ...(request.counts ? [COUNTED, ...cellsOf(request)] : [])];
}

const idOf = (kid: string, signal: string, value: string): string => `${kid}|${signal}|${value}`;

async function countAll(tx: HotTransaction, entries: readonly SummaryEntry[]): Promise<void> {
  const cells = entries.flatMap(({ kid, request }) =>
    counted(request).map(({ name, value }) => [kid, name, value] as const),
  );
  await insertMany(
    tx,
    'INSERT INTO population (kid, signal, value, devices)',
    // In one order for all nodes and tenants: batches must not deadlock on PostgreSQL.
    countBy(cells, (cell) => cell),
    'ON CONFLICT (kid, signal, value) DO UPDATE SET devices = population.devices + excluded.devices',
  );
}

const readCounts = makeReads({
  about: { kid: 'text', signal: 'text', value: 'text' },
  sql: `SELECT p.kid AS kid, p.signal AS signal, p.value AS value, p.devices AS devices
    FROM q JOIN population p ON p.kid = q.kid AND p.signal = q.signal AND p.value = q.value`,
  columns: ['kid', 'signal', 'value', 'devices'],
});

/** How many of its tenant's devices have each value that these requests have. */
async function countsOf(tx: HotTransaction, entries: readonly SummaryEntry[]): Promise<Map<string, number>> {
  const asked = new Map<string, Bindings>();
  for (const { kid, request } of entries) {
    for (const { name, value } of [DEVICES, COUNTED, ...cellsOf(request)])
      asked.set(idOf(kid, name, value), [kid, name, value]);
  }
  const [found = []] = await readCounts(tx, [...asked.values()]);
  return new Map(
    found.map(([kid, signal, value, devices]) => [
      idOf(String(kid), String(signal), String(value)),
      Number(devices),
    ]),
  );
}

function summaryRow({ kid, requestId, request }: SummaryEntry, counts: ReadonlyMap<string, number>) {
  const count = ({ name, value }: Cell): number | undefined => counts.get(idOf(kid, name, value));
  const total = count(COUNTED) ?? 1;
  // What was first seen before the tenant opted in was never counted.
  const bitsOf = (cell: Cell): number => Math.max(0, Math.log2(total / (count(cell) ?? 1)));
  const summary: StoredSummary = {
    devices: count(DEVICES) ?? 0,
    jointBits: bitsOf({ name: JOINT, value: request.joint }),
    signals: request.signals.map((cell) => ({ name: cell.name, bits: bitsOf(cell) })),
  };
  return [kid, requestId, request.expiresAt, JSON.stringify(summary)];
}

/** Counts what has to be counted, and keeps how rare each value is. */
export async function writeSummaries(tx: HotTransaction, entries: readonly SummaryEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await countAll(tx, entries);
  const counts = await countsOf(tx, entries);
  const rows = entries.map((entry) => summaryRow(entry, counts));
  await insertMany(tx, 'INSERT INTO signal_summaries (kid, request_id, expires_at, summary)', rows);
}

export async function findSummary(database: Database, kid: string, requestId: string, now: number) {
  const rows = database.read('signal_summaries').where({ kid, request_id: requestId });
  const summary = await cellOf<string>(rows.where('expires_at', '>', now), 'summary');
  return summary === undefined ? null : (JSON.parse(summary) as StoredSummary);
}

export async function purgeSummaries(database: Database, now: number): Promise<void> {
  await purge(database, 'signal_summaries', ['kid', 'request_id'], (rows) =>
    unlessRequestHeld(rows.where('expires_at', '<=', now), 'signal_summaries'),
  );
}

/** The rows that accepted bundles leave; pure. */

/** By the second column: one order of rows for all nodes keeps concurrent batches from deadlocking on PostgreSQL. */
const inOrder = (rows: Iterable<Bindings>): Bindings[] =>
  [...rows].sort((a, b) => (String(a[1]) < String(b[1]) ? -1 : 1));

export const nonceRows = (claims: readonly NonceClaim[]): Bindings[] =>
  inOrder(claims.map(({ kid, nonce, datedAt }) => [kid, nonce, datedAt]));

interface SightingGroup {
  readonly kid: string;
  readonly durable: string;
  first: number;
  last: number;
  seen: number;
}

/** One row a device: PostgreSQL refuses to update a row twice in one statement. */
function groupSightings(entries: readonly RecordEntry[]): SightingGroup[] {
  const groups = new Map<string, SightingGroup>();
  for (const { kid, identified, verdict } of entries) {
    if (!identified) continue;
    const { durable } = identified;
    const at = verdict.decidedAt;
    const group = groups.get(`${kid}|${durable}`);
    if (group) {
      group.first = Math.min(group.first, at);
      group.last = Math.max(group.last, at);
      group.seen += 1;
    } else {
      groups.set(`${kid}|${durable}`, { kid, durable, first: at, last: at, seen: 1 });
    }
  }
  return [...groups.values()];
}

export function sightingRows(entries: readonly RecordEntry[]): Bindings[] {
  const rows = groupSightings(entries).map(({ kid, durable, first, last, seen }) => {
    return [kid, durable, first, last, seen];
  });
  return inOrder(rows);
}

/** Of every visit: that the device was seen in this epoch does not say that the index has its visitorId still. */
export function indexRows(entries: readonly RecordEntry[]): Bindings[] {
  const rows = new Map<string, Bindings>();
  for (const { kid, identified } of entries) {
    if (!identified) continue;
    const { visitorId, durable, epoch, epochEndsAt } = identified;
    rows.set(`${kid}|${visitorId}`, [kid, visitorId, durable, epoch, epochEndsAt]);
  }
  return inOrder(rows.values());
}

/** One row a network, device and day that was not counted before. */
export function markRows(entries: readonly RecordEntry[]): Bindings[] {
  const rows = new Map<string, Bindings>();
  for (const { kid, identified } of entries) {
    if (!identified || identified.marked) continue;
    const row = [kid, identified.durable, identified.day, identified.network];
    rows.set(row.join('|'), row);
  }
  return inOrder(rows.values());
}

/** How many of `rows` share a key, as rows to be added up, in the order of the keys. */
export function countBy<Row>(rows: readonly Row[], keyOf: (row: Row) => readonly (string | number)[]) {
  const counts = new Map<string, Bindings>();
  for (const row of rows) {
    const key = keyOf(row);
    const id = key.join('|');
    const known = counts.get(id);
    if (known) known[key.length] = Number(known[key.length]) + 1;
    else counts.set(id, [...key, 1]);
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

/** How often the shadow agrees and how often it does not. */
export function shadowRows(entries: readonly RecordEntry[]): Bindings[] {
  const counted = entries.flatMap(({ kid, shadow, verdict }) => (shadow ? [{ kid, shadow, verdict }] : []));
  return countBy(counted, ({ kid, shadow, verdict }) => {
    return [kid, shadow.day, shadow.policyVersion, verdict.class, shadow.class];
  });
}

/** @param anchoredTo what is written now is no row of an anchored hour, whatever a clock that went back says */
export function decisionRows(entries: readonly RecordEntry[], anchoredTo: (kid: string) => number) {
  return entries.map(({ kid, verdict, salt }): Bindings => {
    const text = JSON.stringify(verdict);
    const commitment = commitVerdict(Buffer.from(salt, 'base64url'), kid, verdict.requestId, text);
    return [
      kid,
      verdict.requestId,
      Math.max(verdict.decidedAt, anchoredTo(kid)),
      verdict.class,
      verdict.durable,
      text,
      salt,
      commitment,
    ];
  });
}
