import type { Knex } from 'knex';
import { DAY } from '../lib/clock.ts';
import {
  DEFENCE_BASIS,
  type Keep,
  type Requester,
  type Scope,
  type ScopeCount,
  type ScopeCounts,
} from '../rights/erase.ts';
import { dropExportsOf } from './console-jobs.ts';
import { type ErasedVerdict, keepCommitments } from './verdict-seal.ts';

/** Deletes the rows of an erasure, all in the caller's transaction; the head of the tenant's log has to be locked. */

export interface RowTarget {
  readonly kid: string;
  readonly durables: readonly string[];
  readonly requests: readonly string[];
  /** Keyed reference of a principal, all of whose links go. */
  readonly linksOf: string | null;
  /** The keyed reference under which events about a request wait in the outbox. */
  readonly requestRef: (requestId: string) => string;
  readonly keep: Keep;
  /** Noted at every hold that this erasure meets. */
  readonly requestedBy: Requester;
}

export interface ErasedRows {
  readonly counts: ScopeCounts;
  /** Ids that must stand in no file any more. */
  readonly requests: readonly string[];
  readonly visitorIds: readonly string[];
}

interface Hold {
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
}

const NETWORK_DAYS = 9;
const MAX_IN = 500;

/** Statements take so many parameters; a subject may have more requests. */
async function inChunks(
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

async function decisionsOf(tx: Knex.Transaction, target: RowTarget): Promise<DecisionRow[]> {
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
async function defended(tx: Knex.Transaction, target: RowTarget): Promise<ReadonlySet<string>> {
  if (!target.keep.openContests) return new Set();
  const rows = (await tx('contests')
    .where({ kid: target.kid, status: 'open' })
    .where((either) => {
      either.whereIn('durable', [...target.durables]).orWhereIn('request_id', [...target.requests]);
    })
    .pluck('request_id')) as string[];
  return new Set(rows);
}

async function holdsOn(tx: Knex.Transaction, kid: string, durables: readonly string[]): Promise<Hold[]> {
  const holds: Hold[] = [];
  await inChunks(durables, async (chunk) =>
    holds.push(...((await tx('legal_holds').where({ kid }).whereIn('durable', chunk)) as Hold[])),
  );
  return holds;
}

async function contestedOf(
  tx: Knex.Transaction,
  kid: string,
  durables: readonly string[],
): Promise<readonly string[]> {
  const query = tx('contests')
    .where({ kid })
    .whereIn('durable', [...durables]);
  return (await query.pluck('request_id')) as string[];
}

/** Erases what is of these devices or requests, scope by scope. */
export async function eraseRows(tx: Knex.Transaction, target: RowTarget, now: number): Promise<ErasedRows> {
  const { kid, durables, keep } = target;
  const all = await decisionsOf(tx, target);
  const stays = await defended(tx, target);
  // A hold is on the device, whatever the erasure was asked for by.
  const touched = new Set([
    ...durables,
    ...all.flatMap(({ durable }) => (durable === null ? [] : [durable])),
  ]);
  const holds = await holdsOn(tx, kid, [...touched]);
  if (holds.length > 0) await rememberRequest(tx, target);
  const heldBasis = (scope: Scope): string | undefined => holds.find((hold) => hold.scope === scope)?.basis;
  const counts: Partial<Record<Scope, ScopeCount>> = {};
  const visitorIds = (await tx('visitor_index')
    .where({ kid })
    .whereIn('durable', [...durables])
    .pluck('visitor_id')) as string[];
  // A contest outlives its decision in the retention, and links and messages name it still.
  const contested = await contestedOf(tx, kid, durables);
  const requests = [...new Set([...all.map((row) => row.request_id), ...contested, ...target.requests])];
  const going = requests.filter((id) => !stays.has(id));
  await dropExportsOf(tx, kid, new Set([...touched, ...requests, target.linksOf ?? '']));

  /** Counts instead of deleting where a hold, or the person's own defence, keeps the rows. */
  async function scope(
    name: Scope,
    tables: readonly string[],
    select: (table: string) => Knex.QueryBuilder | null,
  ): Promise<void> {
    const basis = heldBasis(name);
    let count = 0;
    for (const table of tables) {
      const query = select(table);
      if (!query) continue;
      const rows: unknown = basis === undefined ? await query.delete() : await query.count({ n: '*' });
      count += basis === undefined ? Number(rows) : Number((rows as { n: number }[])[0]?.n ?? 0);
    }
    const before = counts[name] ?? { erased: 0, retained: 0 };
    counts[name] =
      basis === undefined
        ? { ...before, erased: before.erased + count }
        : { ...before, retained: before.retained + count, basis };
  }
  const ofDevices = (table: string): Knex.QueryBuilder | null =>
    durables.length === 0
      ? null
      : tx(table)
          .where({ kid })
          .whereIn('durable', [...durables]);
  const ofRequests = (table: string, ids: readonly string[]): Knex.QueryBuilder =>
    tx(table)
      .where({ kid })
      .whereIn('request_id', [...ids]);

  // Decisions first: their commitments need the rows to be there.
  if (heldBasis('decisions') === undefined) {
    const erased = all.filter((row) => !stays.has(row.request_id));
    await keepCommitments(tx, kid, erased);
  }
  for (let i = 0; i < going.length || i === 0; i += MAX_IN) {
    const chunk = going.slice(i, i + MAX_IN);
    await scope('decisions', ['decisions'], (table) => ofRequests(table, chunk));
    await scope('contests', ['contests'], (table) => ofRequests(table, chunk));
    // After the contests: whoever resolves one of them meanwhile has put the outcome here before it lets go.
    if (heldBasis('decisions') === undefined) await ofRequests('webhook_outbox', chunk).delete();
    await tx('webhook_outbox').where({ kid }).whereIn('principal', chunk.map(target.requestRef)).delete();
    await scope('links', ['links'], (table) => ofRequests(table, chunk));
    await scope('signal-summaries', ['signal_summaries'], (table) => ofRequests(table, chunk));
    if (!keep.override) await scope('override', ['overrides'], (table) => ofRequests(table, chunk));
  }
  if (!keep.openContests) await scope('contests', ['contests'], ofDevices);
  if (!keep.override) await scope('override', ['overrides'], ofDevices);
  await scope('sightings', ['sightings'], ofDevices);
  await scope('visitor-index', ['visitor_index'], ofDevices);
  const today = Math.floor(now / DAY);
  const days = Array.from({ length: NETWORK_DAYS }, (_, i) => today - i);
  // The day comes first in their keys.
  await scope('network-marks', ['network_marks', 'network_days'], (table) => {
    const query = ofDevices(table);
    return query ? query.whereIn('day', days) : null;
  });
  const { linksOf } = target;
  if (linksOf !== null) {
    await scope('links', ['links'], (table) => tx(table).where({ kid, principal: linksOf }));
  }
  if (keep.override) await keepOverrides(tx, target, requests, counts);
  if (stays.size > 0) {
    for (const name of ['contests', 'decisions'] as const) {
      counts[name] = { erased: counts[name]?.erased ?? 0, retained: stays.size, basis: DEFENCE_BASIS };
    }
  }
  return { counts, requests: heldBasis('decisions') === undefined ? going : [], visitorIds };
}

/** What `/me forget` leaves is the person's own: only a whole erasure waits for a hold. */
async function rememberRequest(tx: Knex.Transaction, target: RowTarget): Promise<void> {
  const { kid, durables, keep, requestedBy } = target;
  if (keep.openContests || keep.override) return;
  await tx('legal_holds')
    .where({ kid })
    .whereIn('durable', [...durables])
    .update({ requested_by: requestedBy });
}

async function keepOverrides(
  tx: Knex.Transaction,
  target: RowTarget,
  requests: readonly string[],
  counts: Partial<Record<Scope, ScopeCount>>,
): Promise<void> {
  const rows = await tx('overrides')
    .where({ kid: target.kid })
    .whereIn('durable', [...target.durables])
    .count<{ n: number }[]>({ n: '*' });
  const retained = Number(rows[0]?.n ?? 0);
  if (retained > 0) counts.override = { erased: 0, retained, basis: DEFENCE_BASIS };
  // The override stays for its device; that this request led to it is told no more.
  const { kid } = target;
  await inChunks(requests, (chunk) =>
    tx('overrides').where({ kid }).whereIn('request_id', chunk).update({ request_id: null }),
  );
}
