import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { makeReads } from '../db/reads.ts';
import { type Bindings, cellOf, type HotTransaction, insertMany } from '../db/sql.ts';
import { unlessRequestHeld } from './legal-holds.ts';
import { countBy } from './rows-store.ts';
import type { StoredSummary, SummaryRequest } from './summary.ts';

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
