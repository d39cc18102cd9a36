import type { Knex } from 'knex';
import type { Keep, Requester } from '../rights/erase.ts';
import type { ErasedVerdict } from './verdict-seal.ts';

/** Whose rows an erasure means, before any of them goes. */

export interface RowTarget {
  readonly kid: string;
  readonly durables: readonly string[];
  readonly requests: readonly string[];
  /** Keyed reference of a principal, all of whose links go. */
  readonly linksOf: string | null;
  /** The keyed reference under which events about a request wait in the outbox. */
  readonly requestRef: (requestId: string) => string;
  readonly keep: Keep;
  /** Noted where this erasure meets a hold. */
  readonly requestedBy: Requester;
}

/** Ids of one statement. */
export const MAX_IN = 500;

/** Statements take so many parameters; a subject may have more requests. */
export async function inChunks(
  ids: readonly string[],
  work: (chunk: readonly string[]) => Promise<number>,
): Promise<number> {
  let count = 0;
  for (let i = 0; i < ids.length; i += MAX_IN) count += await work(ids.slice(i, i + MAX_IN));
  return count;
}

interface DecisionRow extends ErasedVerdict {
  readonly durable: string | null;
}

export async function decisionsOf(tx: Knex.Transaction, target: RowTarget): Promise<DecisionRow[]> {
  const { kid, durables, requests } = target;
  const columns = ['request_id', 'decided_at', 'commitment', 'durable'];
  const found = new Map<string, DecisionRow>();
  const take = async (column: string, ids: readonly string[]): Promise<number> => {
    const rows = (await tx('decisions').where({ kid }).whereIn(column, ids).select(columns)) as DecisionRow[];
    for (const row of rows) found.set(row.request_id, row);
    return rows.length;
  };
  await inChunks(durables, (chunk) => take('durable', chunk));
  await inChunks(requests, (chunk) => take('request_id', chunk));
  return [...found.values()];
}

/** Requests whose contest stays, with what they need to be decided. */
export async function defended(tx: Knex.Transaction, target: RowTarget): Promise<ReadonlySet<string>> {
  if (!target.keep.openContests) return new Set();
  const rows = (await tx('contests')
    .where({ kid: target.kid, status: 'open' })
    .where((either) => {
      either.whereIn('durable', [...target.durables]).orWhereIn('request_id', [...target.requests]);
    })
    .pluck('request_id')) as string[];
  return new Set(rows);
}

/**
 * The device of each request that is meant: by its decision, by its contest, which outlives the decision in the retention,
 * or as it was noted when a hold made it wait.
 */
export async function devicesOf(
  tx: Knex.Transaction,
  target: RowTarget,
  decisions: readonly DecisionRow[],
): Promise<Map<string, string | null>> {
  const { kid, durables, requests } = target;
  const found = new Map<string, string | null>(requests.map((id) => [id, null]));
  const take = (rows: readonly { request_id: string; durable: string | null }[]): number => {
    for (const { request_id: id, durable } of rows) found.set(id, durable ?? found.get(id) ?? null);
    return rows.length;
  };
  const columns = ['request_id', 'durable'];
  for (const [column, ids] of [
    ['durable', durables],
    ['request_id', requests],
  ] as const)
    await inChunks(ids, async (chunk) =>
      take(
        await tx('contests')
          .where({ kid })
          .whereIn(column, [...chunk])
          .select(columns),
      ),
    );
  await inChunks(requests, async (chunk) =>
    take(
      await tx('held_erasures')
        .where({ kid })
        .whereIn('request_id', [...chunk])
        .select(columns),
    ),
  );
  take(decisions);
  return found;
}
