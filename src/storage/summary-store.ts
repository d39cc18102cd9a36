import type { Knex } from 'knex';
import type { SummaryRequest } from '../ingest/summary.ts';
import type { StoredSummary } from '../rights/transparency.ts';
import type { Database } from './db.ts';

/** Population counts by keyed hash, and what is kept of a request for the life of its token. */

/** The row that counts devices and no value. */
const ALL = { signal: '*', value: '*' };

interface CountRow {
  readonly signal: string;
  readonly value: string;
  readonly devices: number;
}

async function countDevice(
  tx: Knex.Transaction,
  kid: string,
  signals: SummaryRequest['signals'],
): Promise<void> {
  const rows = [ALL, ...signals.map(({ name, value }) => ({ signal: name, value }))]
    .map((row) => ({ kid, ...row, devices: 1 }))
    // One order for all nodes: batches must not deadlock on PostgreSQL.
    .sort((a, b) => (a.signal < b.signal ? -1 : 1));
  await tx('population')
    .insert(rows)
    .onConflict(['kid', 'signal', 'value'])
    .merge({ devices: tx.raw('population.devices + 1') });
}

/** Counts a new device, and keeps how rare each of its values is. */
export async function writeSummary(
  tx: Knex.Transaction,
  kid: string,
  requestId: string,
  request: SummaryRequest,
): Promise<void> {
  const { signals, first, expiresAt } = request;
  if (first) await countDevice(tx, kid, signals);
  const values = [ALL.value, ...signals.map(({ value }) => value)];
  const rows = await tx<CountRow & { kid: string }>('population').where({ kid }).whereIn('value', values);
  const counts = new Map(rows.map((row) => [`${row.signal}|${row.value}`, Number(row.devices)]));
  const devices = counts.get(`${ALL.signal}|${ALL.value}`) ?? 1;
  const summary: StoredSummary = {
    devices,
    signals: signals.map(({ name, value }) => {
      // A device that was first seen before the tenant opted in was never counted.
      const own = counts.get(`${name}|${value}`) ?? 1;
      return { name, bits: Math.max(0, Math.log2(devices / own)) };
    }),
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
  await database.transaction((tx) => tx('signal_summaries').where('expires_at', '<=', now).delete());
}
