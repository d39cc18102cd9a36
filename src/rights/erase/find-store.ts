import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { hasRowLocks, pagesOf, whereAmong, whereOneOf } from '../../db/sql.ts';
import { holdsOn } from '../../ingest/devices-store.ts';
import type { Verdict } from '../../ingest/verdict/verdict.ts';
import { inChunks } from '../../lib/collections.ts';
import { tryOr } from '../../lib/errors.ts';
import { hourOfVerdict } from '../../log/anchors-store.ts';
import type { OutboxEntry } from '../../notify/outbox-store.ts';
import { tablesWhere } from '../person-map.ts';
import { DEFENCE_BASIS, DEVICE_BASIS, type ErasureTarget, type Keep } from './erasure-service.ts';

/**
 * Finds the requests and devices of an erasure, the part of them that is kept, and the ids that the tables of
 * a tenant have.
 */

export interface RowTarget extends Omit<ErasureTarget, 'principal'> {
  readonly kid: string;
  /** The keyed reference of a request. */
  readonly requestRef: (requestId: string) => string;
  readonly keep: Keep;
  /** Makes the webhook events of a deleted decision. A count and a test have none. */
  readonly erasedEvents?: (requestId: string) => readonly OutboxEntry[];
}

/** Ids by which the rows of an erasure are found. */
export interface Ids {
  readonly requests: string[];
  /**
   * Requests whose contests are deleted at once, because people wrote them, even if a large erasure leaves
   * the rest to pages.
   */
  readonly contests: string[];
  readonly devices: string[];
  /** Devices with an override. */
  readonly overridden: string[];
  /** Devices whose visitorIds are deleted too. */
  readonly indexed: string[];
  /** Requests that are not in `requests`, and whose link to the principal is deleted alone. */
  readonly linked: string[];
  /** Keyed references of contested requests: events about a contest wait in the outbox under them. */
  readonly contested: string[];
}

interface RequestRow {
  readonly request_id: string;
  readonly durable: string | null;
}

/**
 * Reads rows that name both a device and a request. A contest and an override outlive their decision in the
 * retention.
 */
async function rowsNamed(
  db: Knex,
  table: 'contests' | 'overrides' | 'decisions',
  { kid, durables, requests }: Pick<RowTarget, 'kid' | 'durables' | 'requests'>,
): Promise<RequestRow[]> {
  const namedRows: RequestRow[] = [];
  for (const [column, values] of [
    ['durable', durables],
    ['request_id', requests],
  ] as const)
    await inChunks(values, async (ids) => {
      const rows = whereOneOf(db(table).where({ kid }), db, column, ids).select('request_id', 'durable');
      // Rows are pushed one by one, because a device may have more rows than a call takes arguments.
      for (const row of (await rows) as RequestRow[]) namedRows.push(row);
    });
  return namedRows;
}

/**
 * Reads the target's requests and the hours of their decisions, by short reads.
 * @returns null if there are more than `maxRequests`
 */
export async function readTargetSize(db: Knex, { kid, durables, requests }: RowTarget, maxRequests: number) {
  const ids = new Set(requests);
  const hours = new Set<number>();
  for (const [column, values] of [
    ['durable', durables],
    ['request_id', requests],
  ] as const)
    await inChunks(values, async (chunk) => {
      if (ids.size > maxRequests) return;
      const rows = whereOneOf(db('decisions').where({ kid }), db, column, chunk).limit(maxRequests + 1);
      for (const row of await rows.select('request_id', 'decided_at')) {
        ids.add(String(row.request_id));
        hours.add(hourOfVerdict(row));
      }
    });
  return ids.size > maxRequests ? null : { ids, hours };
}

/**
 * Waits for visits and rulings that are under way; until the transaction ends none of these devices or
 * requests gets another row. SQLite has one writer.
 */
export async function lockSubject(
  tx: Knex.Transaction,
  { kid, durables, requests }: RowTarget,
): Promise<void> {
  if (!hasRowLocks(tx)) return;
  for (const [table, column, values] of [
    ['contests', 'durable', durables],
    ['contests', 'request_id', requests],
    ['sightings', 'durable', durables],
  ] as const)
    await inChunks(values, async (ids) => {
      await whereAmong(tx(table).where({ kid }), tx, column, ids).orderBy(column).forUpdate().select('kid');
    });
}

/** Reads which of these contests are open, where open ones are kept. @returns their requests */
async function defendedRequests(db: Knex, { kid, keep }: RowTarget, contests: readonly RequestRow[]) {
  if (!keep.openContests) return new Set<string>();
  const ids = contests.map(({ request_id: id }) => id);
  const openContests = whereAmong(db('contests').where({ kid, status: 'open' }), db, 'request_id', ids);
  return new Set((await openContests.pluck('request_id')) as string[]);
}

const noIds = (): Ids => ({
  requests: [],
  contests: [],
  devices: [],
  overridden: [],
  indexed: [],
  linked: [],
  contested: [],
});

/** The part of a target that is deleted, and the parts that are kept, each with its basis. */
export interface Subject {
  readonly deletedIds: Ids;
  readonly keptIds: ReadonlyMap<string, Ids>;
  /** Devices with a legal hold. */
  readonly heldDevices: readonly string[];
}

/** Reads the linked requests of a principal that are not among these, each with its device. */
async function readLinkedRequests(
  db: Knex,
  { kid, linksOf }: RowTarget,
  requests: { has(id: string): boolean },
) {
  if (linksOf === null) return new Map<string, string | null>();
  const ids = (await db('links').where({ kid, principal: linksOf }).pluck('request_id')) as string[];
  const newRequests = ids.filter((id) => !requests.has(id));
  const linked = new Map<string, string | null>(newRequests.map((id) => [id, null]));
  for (const row of await rowsNamed(db, 'decisions', { kid, durables: [], requests: newRequests }))
    linked.set(row.request_id, row.durable);
  return linked;
}

/** Divides ids into those that are deleted and those that a legal hold or a defence keeps. */
function createSubject(holds: ReadonlyMap<string, string>) {
  const deletedIds = noIds();
  const keptIds = new Map<string, Ids>();
  function idsKeptBy(basis: string): Ids {
    const ids = keptIds.get(basis) ?? noIds();
    keptIds.set(basis, ids);
    return ids;
  }
  function placeId(
    kind: keyof Ids,
    id: string,
    durable: string | null | undefined,
    isDefended = false,
  ): void {
    const basis = holds.get(durable ?? '') ?? (isDefended ? DEFENCE_BASIS : undefined);
    const ids = basis === undefined ? deletedIds : idsKeptBy(basis);
    ids[kind].push(id);
  }
  return { deletedIds, keptIds, idsKeptBy, placeId };
}

/**
 * The part of an erasure that one transaction deletes. `whole`: everything. `begin`: everything but the
 * requests, which may be too many and are left to pages. `page`: some of those requests; the legal holds were
 * met at the beginning, and a later one keeps nothing.
 */
export type Part = 'whole' | 'begin' | 'page';

/** Finds the rows of the target, and divides them into those that are deleted and those that are kept. */
export async function readSubject(db: Knex, target: RowTarget, part: Part = 'whole'): Promise<Subject> {
  const { kid, durables, keep, requestRef } = target;
  const contests = await rowsNamed(db, 'contests', target);
  const overrides = await rowsNamed(db, 'overrides', target);
  // The receipt counts all rows of a held device, which are kept. That takes its time under the lock, for few
  // devices ever.
  const scannedDevices = part === 'begin' ? [...(await holdsOn(db, kid, durables)).keys()] : durables;
  const decisions =
    part === 'page' ? [] : await rowsNamed(db, 'decisions', { ...target, durables: scannedDevices });
  const requests = new Map<string, string | null>(target.requests.map((id) => [id, null]));
  for (const { request_id: id, durable } of [...contests, ...overrides, ...decisions])
    if (id) requests.set(id, durable ?? requests.get(id) ?? null);
  const linked = await readLinkedRequests(db, target, requests);
  const devices = new Set(
    [...durables, ...requests.values(), ...linked.values()].filter((id) => id !== null),
  );
  const holds = part === 'page' ? new Map<string, string>() : await holdsOn(db, kid, [...devices]);
  const defendedIds = await defendedRequests(db, target, contests);
  // A person asks by visitorId for the rows that are kept of a device, and so its visitorIds stay too.
  const defended = new Set([...defendedIds].map((id) => requests.get(id)));
  if (keep.override) for (const { durable } of overrides) defended.add(durable);

  const { deletedIds, keptIds, placeId, idsKeptBy } = createSubject(holds);
  for (const [id, durable] of requests) {
    placeId('requests', id, durable, defendedIds.has(id));
    placeId('contests', id, durable, defendedIds.has(id));
  }
  for (const { request_id: id, durable } of contests)
    placeId('contested', requestRef(id), durable, defendedIds.has(id));
  for (const [id, durable] of linked) placeId('linked', id, durable);
  for (const durable of durables) {
    placeId('devices', durable, durable);
    placeId('indexed', durable, durable, defended.has(durable));
  }
  if (target.linksOf !== null)
    for (const durable of devices)
      if (!durables.includes(durable)) {
        const ofDevice = idsKeptBy(DEVICE_BASIS);
        ofDevice.devices.push(durable);
        ofDevice.indexed.push(durable);
      }
  for (const durable of new Set(overrides.map((row) => row.durable)))
    if (durable !== null) placeId('overridden', durable, durable, keep.override);
  return { deletedIds, keptIds, heldDevices: [...holds.keys()] };
}

/** A request that an erasure of its principal deletes, and the device that it leaves. */
export interface LeftDevice {
  readonly requestId: string;
  readonly durable: string;
}

/**
 * Reads the devices that only the linked requests of a principal lead to. No request leads to a shared id,
 * which may be other people's.
 */
export async function readLeftDevices(
  db: Knex,
  { kid, durables, requests, linksOf }: RowTarget,
): Promise<readonly LeftDevice[]> {
  const leftDevices: LeftDevice[] = [];
  if (linksOf === null) return leftDevices;
  await inChunks(requests, async (ids) => {
    const rows = whereAmong(db('decisions').where({ kid }), db, 'request_id', ids).whereNotNull('durable');
    for (const row of (await rows.select('request_id', 'durable', 'verdict')) as VerdictRow[]) {
      const { request_id: requestId, durable } = row;
      const isShared = tryOr(() => (JSON.parse(row.verdict) as Verdict).needsAttestation, true);
      if (!isShared && !durables.includes(durable)) leftDevices.push({ requestId, durable });
    }
  });
  return leftDevices;
}

type VerdictRow = Readonly<Record<'request_id' | 'durable' | 'verdict', string>>;

/** Tables of a device, read by an index. */
const OF_DEVICES = tablesWhere(
  ({ names, reapplied, tenant }) => names.includes('durable') && reapplied && tenant !== 'scanned',
);

/** @returns the erased ids that are in use again, because the device made another visit */
export async function idsInUse(
  db: Knex,
  kid: string,
  { devices, visitorIds }: { readonly devices: readonly string[]; readonly visitorIds: readonly string[] },
): Promise<ReadonlySet<string>> {
  const usedIds = new Set<string>();
  const columns = [
    ...OF_DEVICES.map((table) => [table, 'durable', devices] as const),
    ['visitor_index', 'visitor_id', visitorIds] as const,
  ];
  for (const [table, column, ids] of columns)
    await inChunks(ids, async (chunk) => {
      const rows = whereAmong(db(table).where({ kid }), db, column, chunk);
      for (const id of (await rows.distinct(column).pluck(column)) as string[]) usedIds.add(id);
    });
  return usedIds;
}

const PAGE = 5000;

/**
 * Every id of a kind that a tenant's tables have: a tombstone names its subject by a keyed reference alone.
 * Ids come more than once when several tables have them.
 */
export async function* storedIds({ read }: Database, kid: string, name: 'durable' | 'request_id') {
  for (const table of tablesWhere(({ reapplied, names }) => reapplied && names.includes(name)))
    for await (const rows of pagesOf<Readonly<Record<typeof name, string>>>(
      read(table).where({ kid }).where(name, '>', '').distinct(name),
      [name],
      PAGE,
    ))
      for (const row of rows) yield row[name];
}
