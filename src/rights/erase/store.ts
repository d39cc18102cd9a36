import type { Knex } from 'knex';
import { whereAmong } from '../../db/sql.ts';
import { inChunks } from '../../lib/chunks.ts';
import {
  type ErasedVerdict,
  keepCommitments,
  makeSealedPlaces,
  type SealedPlaces,
} from '../../log/verdict-seal-store.ts';
import { dropExportsOf } from '../job-store.ts';
import { addCount, DEFENCE_BASIS, emptyTally, type ScopeCounts } from './erasure.ts';
import { contestedOf, type RowTarget, requestsOf, whoIsMeant } from './find-store.ts';
import {
  basisOfDevice,
  basisOfRequest,
  byDevice,
  byRequest,
  CONTESTS,
  countOf,
  LINKS,
  OF_DEVICES,
  OF_REQUESTS,
  OVERRIDES,
  type Work,
} from './rows-store.ts';
import { settleDevices, settleRequests } from './settle-store.ts';

/** Deletes the rows of an erasure in the caller's transaction. The head of the tenant's log must be locked. */

export interface ErasedRows {
  readonly counts: ScopeCounts;
  /** Ids that must stand in no file any more. */
  readonly requests: readonly string[];
  readonly visitorIds: readonly string[];
  readonly devices: readonly string[];
  /** A hold keeps rows, and its release erases them. */
  readonly waits: boolean;
}

/** Queued webhooks about the contests are deleted with them. */
async function eraseContests(work: Work, ids: readonly string[]): Promise<void> {
  const { tx, meant } = work;
  const { kid, requestRef } = meant.target;
  await inChunks(ids, async (chunk) => {
    await byRequest(work, CONTESTS, chunk);
    // After the contests: a ruling that commits meanwhile writes its override before it releases the row.
    await tx('webhook_outbox').where({ kid }).whereIn('principal', chunk.map(requestRef)).delete();
  });
}

/** After the contests: a ruling that held one of them has committed its override by now. */
async function eraseOverrides(work: Work): Promise<void> {
  const { durables, requests } = work.meant.target;
  // Overrides of the target's devices are counted below.
  await inChunks(requests, (chunk) =>
    byRequest(work, OVERRIDES, chunk, (rows) => rows.whereNotIn('durable', [...durables])),
  );
  await byDevice(work, OVERRIDES);
}

async function keepOverrides({ tx, meant, counts }: Work): Promise<void> {
  const { kid, durables, requests } = meant.target;
  const overrides = (): Knex.QueryBuilder => tx('overrides').where({ kid });
  const retained = await countOf(overrides().whereIn('durable', [...durables]));
  if (retained > 0) counts.override = { erased: 0, retained, basis: DEFENCE_BASIS };
  // The override stays for its device; that this request led to it is told no more.
  const untold = { request_id: null };
  await overrides()
    .whereIn('durable', [...durables])
    .update(untold);
  await inChunks(requests, (chunk) =>
    overrides()
      .whereIn('request_id', [...chunk])
      .update(untold),
  );
}

/** Links that the principal made after its requests were read. */
async function eraseLinks(work: Work): Promise<void> {
  const { kid, linksOf } = work.meant.target;
  if (linksOf === null) return;
  const linked = (await work.tx('links').where({ kid, principal: linksOf }).pluck('request_id')) as string[];
  const others = linked.filter((id) => !work.meant.requests.has(id));
  await inChunks(others, (chunk) => byRequest(work, LINKS, chunk));
}

/** What belongs to neither a device nor one request: running exports, contests, overrides, links of a principal. */
export async function erasePerson(work: Work): Promise<void> {
  const { tx, meant, counts } = work;
  const { target, requests, devices, stays } = meant;
  const { kid, keep, linksOf } = target;
  await dropExportsOf(tx, kid, {
    has: (subject) => devices.has(subject) || requests.has(subject) || subject === linksOf,
  });
  await eraseContests(
    work,
    (await contestedOf(tx, target)).filter((id) => !stays.has(id)),
  );
  if (keep.override) await keepOverrides(work);
  else await eraseOverrides(work);
  await eraseLinks(work);
  for (const scope of stays.size > 0 ? (['contests', 'decisions'] as const) : [])
    addCount(counts, scope, { erased: 0, retained: stays.size, basis: DEFENCE_BASIS });
}

/** After the decisions. @returns the deleted visitor ids: only the index holds them */
export async function eraseDevices(work: Work): Promise<readonly string[]> {
  const { tx, meant } = work;
  const { kid, durables } = meant.target;
  const isKept = basisOfDevice(meant, 'visitor-index');
  const free = durables.filter((durable) => isKept(durable) === undefined);
  const visitorIds = (await tx('visitor_index')
    .where({ kid })
    .whereIn('durable', free)
    .pluck('visitor_id')) as string[];
  for (const rows of OF_DEVICES) await byDevice(work, rows);
  return visitorIds;
}

/** Deletes the rows of these requests. */
export async function eraseRequests(work: Work, ids: readonly string[], places: SealedPlaces): Promise<void> {
  const { tx, meant } = work;
  const { kid } = meant.target;
  const isFree = (id: string): boolean => basisOfRequest(meant, 'decisions')(id) === undefined;
  const free = ids.filter(isFree);
  const among = (table: string): Knex.QueryBuilder =>
    whereAmong(tx(table).where({ kid }), tx, 'request_id', free);
  const going = (await among('decisions').select(
    'request_id',
    'decided_at',
    'commitment',
  )) as ErasedVerdict[];
  await keepCommitments(tx, kid, going, places);
  for (const rows of OF_REQUESTS) await byRequest(work, rows, ids);
  await among('webhook_outbox').delete();
}

/** What was erased and must be in no file. */
export function erasedRows(
  { meant, counts }: Work,
  requests: readonly string[],
  visitorIds: readonly string[],
): ErasedRows {
  const { target, holds, found } = meant;
  return {
    counts,
    requests,
    visitorIds,
    devices: target.durables.filter((durable) => !holds.devices.has(durable) && !found.has(durable)),
    waits: holds.devices.size > 0 && Object.values(counts).some(({ retained }) => retained > 0),
  };
}

/** Erases the target in this transaction. */
export async function eraseRows(
  tx: Knex.Transaction,
  target: RowTarget,
  places?: SealedPlaces,
): Promise<ErasedRows> {
  const meant = await whoIsMeant(tx, target, await requestsOf(tx, target));
  const work: Work = { tx, meant, counts: emptyTally(), marks: null };
  await erasePerson(work);
  const going = [...meant.requests.keys()].filter((id) => !meant.stays.has(id));
  const known = places ?? makeSealedPlaces(target.kid, meant.requests);
  await inChunks(going, (chunk) => eraseRequests(work, chunk, known));
  const visitorIds = await eraseDevices(work);
  await settleDevices(tx, target, meant.holds);
  const held = await settleRequests(tx, meant, going);
  return erasedRows(
    work,
    going.filter((id) => !held.has(id)),
    visitorIds,
  );
}
