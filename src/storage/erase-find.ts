import type { Knex } from 'knex';
import { inChunks } from '../lib/chunks.ts';
import type { Keep, Requester } from '../rights/erase.ts';
import { type Holds, holdsOn } from './erase-holds.ts';

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

/** Requests by their ids, each with its device. */
export type Requests = ReadonlyMap<string, string | null>;

/** What the target comes to. */
export interface Meant {
  readonly target: RowTarget;
  readonly requests: Requests;
  /** Requests whose open contest stays, with what they need to be decided. */
  readonly stays: ReadonlySet<string>;
  readonly holds: Holds;
  /** Devices to which something leads that stays: so do their visitor ids. */
  readonly found: ReadonlySet<string>;
}

interface NamedRow {
  readonly request_id: string;
  readonly durable: string | null;
}

type Source = readonly [table: string, column: 'durable' | 'request_id'];

/** A contest outlives its decision in the retention. */
const CONTESTS: readonly Source[] = [
  ['contests', 'durable'],
  ['contests', 'request_id'],
];
/** What a hold made wait was noted with its device. */
const SOURCES: readonly Source[] = [
  ...CONTESTS,
  ['held_erasures', 'request_id'],
  ['decisions', 'durable'],
  ['decisions', 'request_id'],
];

async function named(db: Knex, target: RowTarget, sources: readonly Source[]): Promise<NamedRow[]> {
  const { kid, durables, requests } = target;
  const found: NamedRow[] = [];
  for (const [table, column] of sources)
    await inChunks(column === 'durable' ? durables : requests, async (chunk) => {
      const rows = db(table)
        .where({ kid })
        .whereIn(column, [...chunk]);
      found.push(...((await rows.select('request_id', 'durable')) as NamedRow[]));
    });
  return found;
}

/** Every request that is meant, with its device where one is known. */
export async function requestsOf(db: Knex, target: RowTarget): Promise<Requests> {
  const found = new Map<string, string | null>(target.requests.map((id) => [id, null]));
  for (const { request_id: id, durable } of await named(db, target, SOURCES))
    found.set(id, durable ?? found.get(id) ?? null);
  return found;
}

/** Requests of the target that were contested. */
export async function contestedOf(db: Knex, target: RowTarget): Promise<string[]> {
  const rows = await named(db, target, CONTESTS);
  return [...new Set(rows.map(({ request_id: id }) => id))];
}

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

/**
 * Devices of which an open contest or an override stays: their visitor ids do as well. By one of them the person asks, and
 * whoever kept the defence and not the way to it would have kept it from its owner.
 */
async function devicesFound(
  tx: Knex.Transaction,
  { kid, durables, keep }: RowTarget,
  stays: ReadonlySet<string>,
  requests: Requests,
): Promise<ReadonlySet<string>> {
  const contested = [...stays].flatMap((id) => requests.get(id) ?? []);
  const overridden = keep.override
    ? ((await tx('overrides')
        .where({ kid })
        .whereIn('durable', [...durables])
        .pluck('durable')) as string[])
    : [];
  return new Set([...contested, ...overridden]);
}

/** The head of the tenant's log has to be locked: nothing that is found here changes until the rows are gone. */
export async function whoIsMeant(
  tx: Knex.Transaction,
  target: RowTarget,
  requests: Requests,
): Promise<Meant> {
  const stays = await defended(tx, target);
  // A hold is on the device, whatever the erasure was asked for by.
  const touched = [...target.durables, ...[...requests.values()].filter((durable) => durable !== null)];
  const holds = await holdsOn(tx, target.kid, [...new Set(touched)]);
  return { target, requests, stays, holds, found: await devicesFound(tx, target, stays, requests) };
}
