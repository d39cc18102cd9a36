import type { Knex } from 'knex';
import type { SummaryRequest } from '../ingest/summary.ts';
import type { StoredSummary } from '../rights/transparency.ts';
import type { Database } from './db.ts';
import { purge } from './purge.ts';

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

async function count(
  tx: Knex.Transaction,
  kid: string,
  cells: readonly { readonly name: string; readonly value: string }[],
): Promise<void> {
  if (cells.length === 0) return;
  const rows = cells
    .map(({ name, value }) => ({ kid, signal: name, value, devices: 1 }))
    // One order for all nodes: batches must not deadlock on PostgreSQL.
    .sort((a, b) => (a.signal < b.signal ? -1 : 1));
  await tx('population')
    .insert(rows)
    .onConflict(['kid', 'signal', 'value'])
    .merge({ devices: tx.raw('population.devices + 1') });
}

/** Counts what has to be counted, and keeps how rare each value is. */
export async function writeSummary(
  tx: Knex.Transaction,
  kid: string,
  requestId: string,
  request: SummaryRequest,
): Promise<void> {
  const { signals, joint, newDevice, counts, expiresAt } = request;
  const all = [...signals, { name: JOINT, value: joint }];
  await count(tx, kid, [
    ...(newDevice ? [{ name: DEVICES, value: '' }] : []),
    ...(counts ? [{ name: COUNTED, value: '' }, ...all] : []),
  ]);
  const values = ['', ...all.map(({ value }) => value)];
  const rows = await tx<CountRow & { kid: string }>('population').where({ kid }).whereIn('value', values);
  const found = new Map(rows.map((row) => [`${row.signal}|${row.value}`, Number(row.devices)]));
  const counted = found.get(`${COUNTED}|`) ?? 1;
  // What was first seen before the tenant opted in was never counted.
  const bitsOf = (name: string, value: string): number =>
    Math.max(0, Math.log2(counted / (found.get(`${name}|${value}`) ?? 1)));
  const summary: StoredSummary = {
    devices: found.get(`${DEVICES}|`) ?? 0,
    jointBits: bitsOf(JOINT, joint),
    signals: signals.map(({ name, value }) => ({ name, bits: bitsOf(name, value) })),
  };
  await tx('signal_summaries').insert({
    kid,
    request_id: requestId,
    expires_at: expiresAt,
    summary: JSON.stringify(summary),
  });
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
