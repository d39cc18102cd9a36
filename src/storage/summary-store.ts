import type { Knex } from 'knex';
import type { SummaryRequest } from '../ingest/summary.ts';
import type { StoredSummary } from '../rights/transparency.ts';
import type { Database } from './db.ts';
import { purge } from './purge.ts';
import { type Bindings, insertMany } from './sql.ts';

/** Population counts by keyed hash, and what is kept of a request for the life of its token. */

/** Rows that count no value: devices, and how often values were counted at all. */
const DEVICES = '*devices';
const COUNTED = '*counted';
const JOINT = '*joint';

interface CountRow {
  readonly signal: string;
  readonly value: string;
  readonly devices: number;
}

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
  return [
    ...(request.newDevice ? [{ name: DEVICES, value: '' }] : []),
    ...(request.counts ? [{ name: COUNTED, value: '' }, ...cellsOf(request)] : []),
  ];
}

async function countAll(tx: Knex.Transaction, entries: readonly SummaryEntry[]): Promise<void> {
  const counts = new Map<string, { readonly row: readonly [string, string, string]; devices: number }>();
  for (const { kid, request } of entries) {
    for (const { name, value } of counted(request)) {
      const id = `${kid}|${name}|${value}`;
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

async function keep(tx: Knex.Transaction, { kid, requestId, request }: SummaryEntry): Promise<void> {
  const all = cellsOf(request);
  const values = ['', ...all.map(({ value }) => value)];
  const rows = await tx<CountRow & { kid: string }>('population').where({ kid }).whereIn('value', values);
  const found = new Map(rows.map((row) => [`${row.signal}|${row.value}`, Number(row.devices)]));
  const total = found.get(`${COUNTED}|`) ?? 1;
  // What was first seen before the tenant opted in was never counted.
  const bitsOf = ({ name, value }: Cell): number =>
    Math.max(0, Math.log2(total / (found.get(`${name}|${value}`) ?? 1)));
  const summary: StoredSummary = {
    devices: found.get(`${DEVICES}|`) ?? 0,
    jointBits: bitsOf({ name: JOINT, value: request.joint }),
    signals: request.signals.map((cell) => ({ name: cell.name, bits: bitsOf(cell) })),
  };
  await tx('signal_summaries').insert({
    kid,
    request_id: requestId,
    expires_at: request.expiresAt,
    summary: JSON.stringify(summary),
  });
}

/** Counts what has to be counted, and keeps how rare each value is. */
export async function writeSummaries(tx: Knex.Transaction, entries: readonly SummaryEntry[]): Promise<void> {
  await countAll(tx, entries);
  for (const entry of entries) await keep(tx, entry);
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
