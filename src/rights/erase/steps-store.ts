import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { inPieces, purge } from '../../db/purge.ts';
import { type Bindings, insertMany, pagesOf, whereAmong } from '../../db/sql.ts';
import { holdTenant } from '../../db/tenant-hold.ts';
import { between, markedBetween, unstaged } from '../../ingest/erasing-store.ts';
import { inChunks } from '../../lib/chunks.ts';
import { lockHead } from '../../log/append-store.ts';
import { hourOfVerdict, makeSealedPlaces, type SealedPlaces } from '../../log/verdict-seal-store.ts';
import { addCount, type Scope } from './erasure.ts';
import { type Meant, type Requests, type RowTarget, requestsBeside, whoIsMeant } from './find-store.ts';
import { holdsOn } from './hold-store.ts';
import { addStep, type StoredErasure } from './receipts-store.ts';
import { basisOfRequest, makeWork, type Work } from './rows-store.ts';
import { settleDevices, settleRequests } from './settle-store.ts';
import { type ErasedRows, erasedRows, STEPS, takeParts, WITH_MARK } from './store.ts';

/**
 * A large erasure (ADR 0028): its requests are staged in steps; one transaction marks them, which hides them from every read,
 * and erases everything else; steps delete their rows. Requests that come after the mark are not part of it.
 */

export interface Staged {
  readonly receiptId: string;
  readonly target: RowTarget;
  readonly at: number;
  readonly requests: Map<string, string | null>;
  /** Those whose decision was deleted before. */
  readonly withoutDecision: Set<string>;
}

interface RequestRow {
  readonly request_id: string;
  readonly durable: string | null;
}

interface MarkedRow extends RequestRow {
  readonly held: string | null;
}

async function stageRows(tx: Knex.Transaction, staged: Staged, found: readonly RequestRow[]): Promise<void> {
  const { receiptId, target, at, requests } = staged;
  await holdTenant(tx, target.kid);
  for (const { request_id: id, durable } of found) requests.set(id, durable);
  await insertMany(
    tx,
    'INSERT INTO erasing (receipt_id, kid, request_id, durable, staged_at)',
    found.map(({ request_id: id, durable }): Bindings => [receiptId, target.kid, id, durable, at]),
    // A step that found the disk full is retried.
    'ON CONFLICT (receipt_id, request_id) DO UPDATE SET durable = excluded.durable',
  );
}

/** Rows of a step: each costs a dozen statements, however few rows it has. */
const LEAST = 100;
const PAGE = 5000;

/** Decisions of a device, by short reads. */
async function requestsOfDevice({ read }: Database, kid: string, durable: string): Promise<string[]> {
  const ids: string[] = [];
  const query = read('decisions').where({ kid, durable }).select('request_id');
  for await (const page of pagesOf<{ request_id: string }>(query, ['request_id'], PAGE))
    for (const { request_id: id } of page) ids.push(id);
  return ids;
}

/** Stages the requests of the target. It hides nothing yet. */
export async function stageTarget(database: Database, staged: Staged): Promise<void> {
  const { kid, durables, requests } = staged.target;
  for (const durable of durables) {
    const stage = async (tx: Knex.Transaction, ids: readonly string[]): Promise<number> => {
      const marked = await markedBetween(tx, kid, ids);
      const own = ids.filter((id) => !marked.has(id)).map((id) => ({ request_id: id, durable }));
      await stageRows(tx, staged, own);
      return own.length;
    };
    await inPieces(database, await requestsOfDevice(database, kid, durable), stage, { least: LEAST });
  }
  const stage = async (tx: Knex.Transaction, ids: readonly string[]): Promise<number> => {
    const found = whereAmong(tx('decisions').where({ kid }), tx, 'request_id', ids);
    const own = (await found.select('request_id', 'durable')) as RequestRow[];
    await stageRows(tx, staged, own);
    return own.length;
  };
  await inPieces(database, requests, stage, { least: LEAST });
}

/** Stages what came since. Idempotent: PostgreSQL may roll the transaction back and run it again. */
async function stageRest(tx: Knex.Transaction, staged: Staged): Promise<void> {
  const { receiptId, target, requests, withoutDecision } = staged;
  for (const durable of target.durables) {
    const came = tx('decisions').where({ kid: target.kid, durable }).select('request_id', 'durable');
    await stageRows(tx, staged, (await unstaged(came, receiptId)) as RequestRow[]);
  }
  const beside = await requestsBeside(tx, target);
  const others = [...beside].filter(([id]) => !requests.has(id) || withoutDecision.has(id));
  await stageRows(
    tx,
    staged,
    others.map(([id, durable]) => ({ request_id: id, durable })),
  );
  for (const [id] of others) withoutDecision.add(id);
}

/** Counts decisions with the mark: from then on they are gone for every reader. */
function countDecisions({ meant, counts }: Work, { withoutDecision }: Staged): void {
  const { requests, holds, stays } = meant;
  const basisOf = basisOfRequest(meant, 'decisions');
  let erased = 0;
  for (const id of requests.keys()) {
    if (withoutDecision.has(id) || stays.has(id)) continue;
    const basis = holds.devices.size > 0 ? basisOf(id) : undefined;
    if (basis === undefined) erased += 1;
    else addCount(counts, 'decisions', { erased: 0, retained: 1, basis });
  }
  addCount(counts, 'decisions', { erased, retained: 0, basis: undefined });
}

/** Marks what is staged and erases everything that is not per request. The head of the tenant's log must be locked. */
export async function markStaged(tx: Knex.Transaction, staged: Staged): Promise<ErasedRows> {
  const { receiptId, target, requests } = staged;
  await stageRest(tx, staged);
  const meant = await whoIsMeant(tx, target, requests);
  await inChunks([...meant.stays], (ids) =>
    tx('erasing').where({ receipt_id: receiptId }).whereIn('request_id', ids).delete(),
  );
  const work = makeWork(tx, meant, { tx, marks: receiptId });
  await takeParts(work, WITH_MARK);
  countDecisions(work, staged);
  await settleDevices(tx, target, meant.holds);
  for (const durable of meant.holds.devices)
    await tx('erasing')
      .where({ receipt_id: receiptId, durable })
      .update({ held: meant.holds.scopes(durable).join(',') });
  // This erasure handles them now; a step records those again that a hold keeps.
  await inChunks(target.requests, (ids) =>
    tx('held_erasures').where({ kid: target.kid }).whereIn('request_id', ids).delete(),
  );
  return erasedRows(
    work,
    [...requests.keys()].filter((id) => !meant.stays.has(id)),
  );
}

/** Deletes what was staged and never marked. */
const forget = (
  database: Database,
  narrow: (rows: Knex.QueryBuilder) => Knex.QueryBuilder,
): Promise<number> =>
  purge(database, 'erasing', ['receipt_id', 'request_id'], (rows) =>
    narrow(rows).whereRaw(
      'NOT EXISTS (SELECT 1 FROM erasures WHERE erasures.receipt_id = erasing.receipt_id)',
    ),
  );

export const dropStaged = (database: Database, receiptId: string): Promise<number> =>
  forget(database, (rows) => rows.where({ receipt_id: receiptId }));

/** What a crash left behind. */
export const dropAbandoned = (database: Database, before: number): Promise<number> =>
  forget(database, (rows) => rows.where('staged_at', '<', before));

const noContests = (): string => {
  throw new Error('the mark has deleted the contests');
};

/** Deletes the rows of these requests, in the order of the database, where they are still marked. @returns those of which a hold keeps a row */
async function eraseStep(
  tx: Knex.Transaction,
  erasure: StoredErasure,
  places: SealedPlaces,
  some: readonly string[],
): Promise<Iterable<string>> {
  const { kid, receiptId, keep, requestedBy } = erasure;
  await lockHead(tx, kid);
  const these = (): Knex.QueryBuilder => between(tx('erasing').where({ receipt_id: receiptId }), some);
  const found = (await these().select('request_id', 'durable', 'held')) as MarkedRow[];
  const requests: Requests = new Map(found.map(({ request_id: id, durable }) => [id, durable]));
  const held = new Map(found.map((row) => [row.durable ?? '', (row.held ?? '').split(',')]));
  // Holds that the mark met and that are still there.
  const wasHeld = (durable: string, scope: Scope): boolean => held.get(durable)?.includes(scope) ?? false;
  const nobody: ReadonlySet<string> = new Set();
  const none = { durables: [], requests: [], linksOf: null, requestRef: noContests };
  const meant: Meant = {
    target: { kid, keep, requestedBy, ...none },
    requests,
    holds: await holdsOn(tx, kid, [...held.keys()], wasHeld),
    devices: nobody,
    contested: [],
    stays: nobody,
    found: nobody,
  };
  const ids = [...requests.keys()];
  const work = makeWork(tx, meant, { tx, going: ids, places });
  await takeParts(work, STEPS);
  const kept = meant.holds.devices.size > 0 ? await settleRequests(tx, meant, ids) : [];
  await these().delete();
  await addStep(tx, receiptId, work.counts);
  return kept;
}

/** The requests that are still marked, and the places of their verdicts in sealed hours. */
async function readMarked({ read }: Database, { kid, receiptId }: StoredErasure) {
  const marked = read('erasing').where({ receipt_id: receiptId }).orderBy('request_id');
  const ids = (await marked.pluck('request_id')) as string[];
  const places = makeSealedPlaces(kid, new Set(ids));
  const hours = new Set<number>();
  await inChunks(ids, async (some) => {
    const found = whereAmong(read('decisions').where({ kid }), read, 'request_id', some);
    for (const row of await found.select('decided_at')) hours.add(hourOfVerdict(row));
  });
  await places.prepare(read, hours);
  return { ids, places };
}

/**
 * Deletes the rows of marked requests in steps. Other nodes may do the same at the same time.
 * @param goesOn false stops between two steps
 * @returns request ids that must be in no file
 */
export async function deleteMarked(
  database: Database,
  erasure: StoredErasure,
  goesOn: () => boolean,
): Promise<ReadonlySet<string>> {
  const { ids, places } = await readMarked(database, erasure);
  const gone = new Set(ids);
  const step = async (tx: Knex.Transaction, some: readonly string[]): Promise<number> => {
    for (const id of await eraseStep(tx, erasure, places, some)) gone.delete(id);
    return some.length;
  };
  await inPieces(database, ids, step, { least: LEAST, goesOn });
  return gone;
}
