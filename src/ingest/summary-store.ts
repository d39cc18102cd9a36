import type { Database } from '../db/db.ts';
import { purge } from '../db/purge.ts';
import { makeReads } from '../db/reads.ts';
import { type Bindings, type HotTransaction, insertMany } from '../db/sql.ts';
import type { StoredSummary, SummaryRequest } from './summary.ts';

/** Population counts by keyed hash, and what is kept of a request for the life of its token. */

/** Rows that count no value: devices, and how often values were counted at all. */
const DEVICES = '*devices';
const COUNTED = '*counted';
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

const TOTALS: readonly Cell[] = [
  { name: DEVICES, value: '' },
  { name: COUNTED, value: '' },
];

function counted(request: SummaryRequest): Cell[] {
  return [
    ...(request.newDevice ? [{ name: DEVICES, value: '' }] : []),
    ...(request.counts ? [{ name: COUNTED, value: '' }, ...cellsOf(request)] : []),
  ];
}

const idOf = (kid: string, signal: string, value: string): string => `${kid}|${signal}|${value}`;

async function countAll(tx: HotTransaction, entries: readonly SummaryEntry[]): Promise<void> {
  const counts = new Map<string, { readonly row: readonly [string, string, string]; devices: number }>();
  for (const { kid, request } of entries) {
    for (const { name, value } of counted(request)) {
      const id = idOf(kid, name, value);
      const known = counts.get(id);
      if (known) known.devices += 1;
      else counts.set(id, { row: [kid, name, value], devices: 1 });
    }
  }
  // One order for all nodes and tenants: batches must not deadlock on PostgreSQL.
  const sorted = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
  await insertMany(
    tx,
    'INSERT INTO population (kid, signal, value, devices)',
    sorted.map(([, { row, devices }]): Bindings => [...row, devices]),
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
    for (const { name, value } of [...TOTALS, ...cellsOf(request)])
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

function summaryRow(
  { kid, requestId, request }: SummaryEntry,
  counts: ReadonlyMap<string, number>,
): Bindings {
  const count = (name: string, value = ''): number | undefined => counts.get(idOf(kid, name, value));
  const total = count(COUNTED) ?? 1;
  // What was first seen before the tenant opted in was never counted.
  const bitsOf = ({ name, value }: Cell): number => Math.max(0, Math.log2(total / (count(name, value) ?? 1)));
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

export async function findSummary(
  database: Database,
  kid: string,
  requestId: string,
  now: number,
): Promise<StoredSummary | null> {
  const row = await database
    .read('signal_summaries')
    .where({ kid, request_id: requestId })
    .where('expires_at', '>', now)
    .first<{ summary: string } | undefined>('summary');
  return row ? (JSON.parse(row.summary) as StoredSummary) : null;
}

export async function purgeSummaries(database: Database, now: number): Promise<void> {
  await purge(database, 'signal_summaries', ['kid', 'request_id'], (rows) =>
    rows.where('expires_at', '<=', now),
  );
}
