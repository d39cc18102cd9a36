import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { pagesOf, whereAmong, whereOneOf } from '../../db/sql.ts';
import { unmarked } from '../../ingest/erasing-store.ts';
import { inChunks } from '../../lib/chunks.ts';
import { hourOfVerdict } from '../../log/verdict-anchor-store.ts';
import type { TableName } from '../subject-data.ts';
import { DEVICES_OF_REQUESTS, tablesWhere } from '../subject-folds.ts';
import type { ErasureTarget, Keep, Requester } from './erasure.ts';
import { type Holds, holdsOn } from './hold-store.ts';

/** Finds the requests and devices of an erasure before anything is deleted. */

export interface RowTarget extends Omit<ErasureTarget, 'principal'> {
  readonly kid: string;
  /** The keyed reference under which events about a request wait in the outbox. */
  readonly requestRef: (requestId: string) => string;
  readonly keep: Keep;
  /** Staged where this erasure meets a hold. */
  readonly requestedBy: Requester;
}

/** Request ids, each with its device. */
export type Requests = ReadonlyMap<string, string | null>;

/** A target with all that decides about its rows. */
export interface Meant {
  readonly target: RowTarget;
  readonly requests: Requests;
  /** Devices of the target and of its requests. */
  readonly devices: ReadonlySet<string>;
  /** Those that were contested. */
  readonly contested: readonly string[];
  /** Requests whose open contest stays, with what they need to be decided. */
  readonly stays: ReadonlySet<string>;
  readonly holds: Holds;
  /** Devices with a contest or an override that stays: their visitor ids stay too. */
  readonly found: ReadonlySet<string>;
}

export interface RequestRow {
  readonly request_id: string;
  readonly durable: string | null;
}

type Source = readonly [table: TableName, column: 'durable' | 'request_id'];

const sourcesOf = (table: TableName): Source[] => [
  [table, 'durable'],
  [table, 'request_id'],
];
const CONTESTS = sourcesOf('contests');
const DECISIONS = sourcesOf('decisions');
/** A contest and an override outlive their decision in the retention, and what a hold made wait was staged with its device. */
export const BESIDE_DECISIONS = DEVICES_OF_REQUESTS.filter((table) => table !== 'decisions').flatMap(
  sourcesOf,
);

/** Rows that the target names. Decisions of a device that an earlier erasure has marked are left out. */
function rowsNamed(db: Knex, { kid }: Target, [table, column]: Source, ids: readonly string[]) {
  const rows = whereOneOf(db(table).where({ kid }), db, column, ids);
  return table === 'decisions' && column === 'durable' ? unmarked(rows, table) : rows;
}

type Target = Pick<RowTarget, 'kid' | 'durables' | 'requests'>;

async function named(db: Knex, target: Target, sources: readonly Source[]): Promise<RequestRow[]> {
  const found: RequestRow[] = [];
  for (const source of sources)
    await inChunks(source[1] === 'durable' ? target.durables : target.requests, async (ids) => {
      // One by one: a device may have more rows than a call takes arguments.
      for (const row of await rowsNamed(db, target, source, ids).select('request_id', 'durable'))
        found.push(row as RequestRow);
    });
  // Null, or empty: the row is about its device alone.
  return found.filter(({ request_id: id }) => id);
}

/** All requests of the target, each with its device where one is known. */
export async function requestsOf(
  db: Knex,
  target: Target,
  sources: readonly Source[] = [...BESIDE_DECISIONS, ...DECISIONS],
): Promise<Requests> {
  const found = new Map<string, string | null>(target.requests.map((id) => [id, null]));
  for (const { request_id: id, durable } of await named(db, target, sources))
    found.set(id, durable ?? found.get(id) ?? null);
  return found;
}

/** The target's requests and the hours of their decisions; null when there are more than `most`. */
export async function sizeUp(db: Knex, target: RowTarget, most: number) {
  const ids = new Set(target.requests);
  const hours = new Set<number>();
  for (const source of DECISIONS)
    await inChunks(source[1] === 'durable' ? target.durables : target.requests, async (some) => {
      if (ids.size > most) return;
      const found = rowsNamed(db, target, source, some).limit(most + 1);
      for (const row of await found.select('request_id', 'decided_at')) {
        ids.add(String(row.request_id));
        hours.add(hourOfVerdict(row));
      }
    });
  return ids.size > most ? null : { ids, hours };
}

/** Tables of a device, read by an index. */
const OF_DEVICES = tablesWhere(
  ({ names, reapplied, tenant }) => names.includes('durable') && reapplied && tenant !== 'scanned',
);

/** Those of the erased ids that are in use: the device visited again. */
export async function idsInUse(
  db: Knex,
  kid: string,
  { devices, visitorIds }: { readonly devices: readonly string[]; readonly visitorIds: readonly string[] },
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const columns = [
    ...OF_DEVICES.map((table) => [table, 'durable', devices] as const),
    ['visitor_index', 'visitor_id', visitorIds] as const,
  ];
  for (const [table, column, ids] of columns)
    await inChunks(ids, async (some) => {
      const rows = whereAmong(db(table).where({ kid }), db, column, some);
      for (const id of (await rows.distinct(column).pluck(column)) as string[]) found.add(id);
    });
  return found;
}

async function defended(tx: Knex, target: RowTarget): Promise<ReadonlySet<string>> {
  if (!target.keep.openContests) return new Set();
  const rows = (await tx('contests')
    .where({ kid: target.kid, status: 'open' })
    .where((either) => {
      either.whereIn('durable', target.durables).orWhereIn('request_id', target.requests);
    })
    .pluck('request_id')) as string[];
  return new Set(rows);
}

/**
 * Devices of which an open contest or an override stays: their visitor ids do as well. By one of them the person asks, and
 * keeping the contest without its visitorId would make it unreachable for its owner.
 */
async function devicesFound(
  tx: Knex,
  { kid, durables, keep }: RowTarget,
  stays: ReadonlySet<string>,
  requests: Requests,
): Promise<ReadonlySet<string>> {
  const contested = [...stays].flatMap((id) => requests.get(id) ?? []);
  const overridden = keep.override
    ? ((await tx('overrides').where({ kid }).whereIn('durable', durables).pluck('durable')) as string[])
    : [];
  return new Set([...contested, ...overridden]);
}

/** While the head of the tenant's log is locked, nothing read here changes until the transaction ends. */
export async function whoIsMeant(tx: Knex, target: RowTarget, requests: Requests): Promise<Meant> {
  const stays = await defended(tx, target);
  const devices = new Set(target.durables);
  for (const durable of requests.values()) if (durable !== null) devices.add(durable);
  // A hold is on the device, whatever the erasure was asked for by.
  const holds = await holdsOn(tx, target.kid, [...devices]);
  const contests = await named(tx, target, CONTESTS);
  const contested = [...new Set(contests.map(({ request_id: id }) => id))];
  const found = await devicesFound(tx, target, stays, requests);
  return { target, requests, devices, contested, stays, holds, found };
}

const PAGE = 5000;

/**
 * Every id of a kind that a tenant's tables hold: a tombstone names its subject by a keyed reference alone. Ids come more than
 * once when several tables hold them.
 */
export async function* heldIds({ read }: Database, kid: string, name: 'durable' | 'request_id') {
  for (const table of tablesWhere(({ reapplied, names }) => reapplied && names.includes(name)))
    for await (const rows of pagesOf<Readonly<Record<typeof name, string>>>(
      read(table).where({ kid }).where(name, '>', '').distinct(name),
      [name],
      PAGE,
    ))
      for (const row of rows) yield row[name];
}
