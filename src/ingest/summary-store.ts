import type { Database } from '../db/engine.ts';
import { purge } from '../db/purge.ts';
import { type Bindings, cellOf, insertMany, joinRow, runAsked, type Transaction } from '../db/sql.ts';
import { unlessRequestHeld } from './devices-store.ts';
import type { StoredSummary, SummaryRequest } from './ports.ts';

/**
 * Counts the population by keyed hash, and stores a summary of each request for the lifetime of its token.
 */

/** Rows that count devices and all counted values instead of one value. */
const DEVICES: Cell = { name: '*devices', value: '' };
const COUNTED: Cell = { name: '*counted', value: '' };
const JOINT = '*joint';

/** A request whose signals are summarised, and what it adds to the population. */
interface SummaryEntry {
  readonly requestId: string;
  readonly request: SummaryRequest;
  /** The device was never seen before. */
  readonly isNewDevice: boolean;
  /** True if it was not counted from this network today: identical devices count once per network and day. */
  readonly isNewPair: boolean;
}

interface Cell {
  readonly name: string;
  readonly value: string;
}

const cellsOf = ({ signals, joint }: SummaryRequest): Cell[] => [...signals, { name: JOINT, value: joint }];

function countedCells({ request, isNewDevice, isNewPair }: SummaryEntry): Cell[] {
  return [...(isNewDevice ? [DEVICES] : []), ...(isNewPair ? [COUNTED, ...cellsOf(request)] : [])];
}

const idOf = ({ name, value }: Cell): string => `${name}|${value}`;

/** All nodes use the same order, so that batches do not deadlock on PostgreSQL. */
async function countAll(tx: Transaction, kid: string, entries: readonly SummaryEntry[]): Promise<void> {
  const sums = new Map<string, { readonly cell: Cell; devices: number }>();
  for (const cell of entries.flatMap(countedCells)) {
    const sum = sums.get(idOf(cell));
    if (sum) sum.devices += 1;
    else sums.set(idOf(cell), { cell, devices: 1 });
  }
  const inOrder = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  await insertMany(
    tx,
    'INSERT INTO population (kid, signal, value, devices)',
    inOrder.map(([, { cell, devices }]): Bindings => [kid, cell.name, cell.value, devices]),
    'ON CONFLICT (kid, signal, value) DO UPDATE SET devices = population.devices + excluded.devices',
  );
}

/** Counts the tenant's devices with each value that these requests have. */
async function readCounts(tx: Transaction, kid: string, entries: readonly SummaryEntry[]) {
  const cells = new Map<string, Bindings>();
  for (const cell of [DEVICES, COUNTED, ...entries.flatMap(({ request }) => cellsOf(request))])
    cells.set(idOf(cell), [cell.name, cell.value]);
  const cellCounts = await runAsked<Cell & { readonly devices: number }>(
    tx,
    {
      columns: { signal: 'text', value: 'text' },
      rows: [...cells.values()],
      sql: `SELECT p.signal AS name, p.value AS value, p.devices AS devices
        FROM q ${joinRow(tx, 'population', 'p', 'p.kid = ? AND p.signal = q.signal AND p.value = q.value')}
        WHERE p.devices IS NOT NULL`,
    },
    kid,
  );
  return new Map(cellCounts.map((row) => [idOf(row), Number(row.devices)]));
}

function summaryOf({ request }: SummaryEntry, counts: ReadonlyMap<string, number>): StoredSummary {
  const count = (cell: Cell): number | undefined => counts.get(idOf(cell));
  const total = count(COUNTED) ?? 1;
  // Devices first seen before the tenant opted in were never counted.
  const bitsOf = (cell: Cell): number => Math.max(0, Math.log2(total / (count(cell) ?? 1)));
  return {
    devices: count(DEVICES) ?? 0,
    jointBits: bitsOf({ name: JOINT, value: request.joint }),
    signals: request.signals.map((cell) => ({ name: cell.name, bits: bitsOf(cell) })),
  };
}

/** Counts the values of a tenant's requests, and stores how rare each value is. */
export async function writeSummaries(tx: Transaction, kid: string, entries: readonly SummaryEntry[]) {
  if (entries.length === 0) return;
  await countAll(tx, kid, entries);
  const counts = await readCounts(tx, kid, entries);
  const rows = entries.map((entry): Bindings => {
    const { requestId, request } = entry;
    return [kid, requestId, request.expiresAt, JSON.stringify(summaryOf(entry, counts))];
  });
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
