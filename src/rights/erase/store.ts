import type { Knex } from 'knex';
import { countOf } from '../../db/sql.ts';
import { inChunks } from '../../lib/chunks.ts';
import { type AnchoredPlaces, makeAnchoredPlaces } from '../../log/verdict-anchor-store.ts';
import type { TableName } from '../subject-data.ts';
import { isStepped, PARTS, type Part, type RowWay, rowOf } from '../subject-folds.ts';
import { addCount, DEFENCE_BASIS } from './erasure.ts';
import { type RowTarget, requestsOf, whoIsMeant } from './find-store.ts';
import { markHeldDevices, markHeldRequests } from './held-mark-store.ts';
import { makeWork, takeNamed, type Work } from './rows-store.ts';

/** Deletes the rows of an erasure in the caller's transaction, table by table as the map of a person lists them. */

export type ErasedRows = ReturnType<typeof erasedRows>;

type Take = (work: Work, table: TableName) => Promise<void>;

const takeRequests: Take = (work, table) =>
  inChunks(work.going, (ids) => takeNamed(work, table, { column: 'request_id', ids }));

const takeDevices: Take = (work, table) =>
  takeNamed(work, table, { column: 'durable', ids: work.meant.target.durables });

/** Of contested requests: queued webhooks name them by a keyed reference. */
async function takeContested(work: Work, table: TableName): Promise<void> {
  const { tx, meant } = work;
  const { kid, requestRef } = meant.target;
  const ids = meant.contested.filter((id) => !meant.stays.has(id));
  await inChunks(ids, async (chunk) => {
    if (rowOf(table).scope !== null) await takeNamed(work, table, { column: 'request_id', ids: chunk });
    else await tx?.(table).where({ kid }).whereIn('principal', chunk.map(requestRef)).delete();
  });
}

/** After the contests: a ruling that held one of them has committed its override by now. */
async function takeOverrides(work: Work, table: TableName): Promise<void> {
  const { durables, requests, keep } = work.meant.target;
  if (keep.override) {
    await keepOverrides(work, table);
    return;
  }
  // Overrides of the target's devices are counted below.
  const narrow = (rows: Knex.QueryBuilder): Knex.QueryBuilder => rows.whereNotIn('durable', durables);
  await inChunks(requests, (ids) => takeNamed(work, table, { column: 'request_id', ids, narrow }));
  await takeDevices(work, table);
}

async function keepOverrides({ db, tx, meant, counts }: Work, table: TableName): Promise<void> {
  const { kid, durables, requests } = meant.target;
  const retained = await countOf(db(table).where({ kid }).whereIn('durable', durables));
  if (retained > 0) addCount(counts, 'override', { erased: 0, retained, basis: DEFENCE_BASIS });
  // The override stays for its device; that this request led to it is no longer recorded.
  for (const [column, all] of [
    ['durable', durables],
    ['request_id', requests],
  ] as const)
    await inChunks(all, async (ids) => {
      await tx?.(table).where({ kid }).whereIn(column, ids).update({ request_id: null });
    });
}

/** Links that the principal made after its requests were read. */
async function takeLinks(work: Work, table: TableName): Promise<void> {
  const { kid, linksOf } = work.meant.target;
  if (linksOf === null) return;
  const linked = (await work.db(table).where({ kid, principal: linksOf }).pluck('request_id')) as string[];
  const others = linked.filter((id) => !work.meant.requests.has(id));
  await inChunks(others, (ids) => takeNamed(work, table, { column: 'request_id', ids }));
}

const WAYS: Readonly<Record<RowWay, Take>> = {
  contest: takeContested,
  override: takeOverrides,
  link: takeLinks,
  request: takeRequests,
  durable: takeDevices,
};

export async function takeParts(work: Work, parts: readonly Part[]): Promise<void> {
  const retained = work.meant.stays.size;
  for (const scope of retained > 0 ? (['contests', 'decisions'] as const) : [])
    addCount(work.counts, scope, { erased: 0, retained, basis: DEFENCE_BASIS });
  for (const { table, way } of parts) await WAYS[way](work, table);
}

export const STEPS: readonly Part[] = PARTS.filter(isStepped);
/** What a large erasure deletes with its mark. */
export const WITH_MARK: readonly Part[] = PARTS.filter((part) => !isStepped(part));

/** A hold keeps rows, and its release erases them. */
const waits = ({ meant, counts }: Work): boolean =>
  meant.holds.devices.size > 0 && Object.values(counts).some(({ retained }) => retained > 0);

/** What was erased and must be in no file. */
export function erasedRows(work: Work, requests: readonly string[]) {
  const { target, holds, found } = work.meant;
  return {
    counts: work.counts,
    requests,
    visitorIds: work.visitorIds,
    caseBytes: work.caseBytes,
    devices: target.durables.filter((durable) => !holds.devices.has(durable) && !found.has(durable)),
    waits: waits(work),
  };
}

async function meantBy(db: Knex, target: RowTarget) {
  const meant = await whoIsMeant(db, target, await requestsOf(db, target));
  return { meant, going: [...meant.requests.keys()].filter((id) => !meant.stays.has(id)) };
}

/** Erases the target in this transaction. The head of the tenant's log must be locked. */
export async function eraseRows(tx: Knex.Transaction, target: RowTarget, known?: AnchoredPlaces) {
  const { meant, going } = await meantBy(tx, target);
  const places = known ?? makeAnchoredPlaces(target.kid, meant.requests);
  const work = makeWork(tx, meant, { tx, going, places });
  await takeParts(work, PARTS);
  await markHeldDevices(tx, target, meant.holds);
  const held = await markHeldRequests(tx, meant, going);
  return erasedRows(
    work,
    going.filter((id) => !held.has(id)),
  );
}

/** The counts of the same erasure, by reads alone. */
export async function countRows(db: Knex, target: Omit<RowTarget, 'requestRef' | 'requestedBy'>) {
  const nobody = { requestRef: String, requestedBy: 'subject' } as const;
  const { meant, going } = await meantBy(db, { ...target, ...nobody });
  const work = makeWork(db, meant, { going });
  const counted = PARTS.filter(({ table }) => rowOf(table).scope !== null);
  await takeParts(work, counted);
  return { counts: work.counts, waits: waits(work) };
}
