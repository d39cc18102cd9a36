import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { inPieces } from '../../db/purge.ts';
import {
  type Bindings,
  cellOf,
  countOf,
  hasRowLocks,
  insertMany,
  pagesOf,
  requireNone,
  whereAmong,
} from '../../db/sql.ts';
import { deleteNetworkDays, deleteVisitorIds, ofStoredDays } from '../../ingest/devices-store.ts';
import type { Clock } from '../../lib/clock.ts';
import { chunksOf, inChunks } from '../../lib/collections.ts';
import {
  type AnchoredPlaces,
  createAnchoredPlaces,
  type ErasedVerdict,
  hourOfVerdict,
  keepCommitments,
} from '../../log/anchors-store.ts';
import { lockHead } from '../../log/entries-store.ts';
import { inTurn } from '../../log/head-queue-store.ts';
import { enqueue } from '../../notify/outbox-store.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { ContestRow } from '../contests/store.ts';
import type { TableName } from '../person-map.ts';
import { addCount, decisionRefs, emptyTally, NOTHING, type Scope } from './erasure-service.ts';
import { type Ids, lockSubject, type RowTarget, readSubject, type Subject } from './find-store.ts';
import { addCounts, findErasure, type StoredErasure } from './receipts-store.ts';

/**
 * The rows that an erasure deletes; the consent evidence is in shred-store.ts. Each transaction locks the
 * head of the tenant's log, so that meanwhile nobody files a contest, places a hold or anchors an hour.
 */

interface Delete {
  readonly table: TableName;
  readonly column: 'request_id' | 'durable' | 'principal';
  readonly ids: keyof Ids;
  /** The line of the receipt that counts the rows. Null: the rows are copies of others that are counted. */
  readonly scope: Scope | null;
}

/** Rows are deleted in this order. Updates and outcomes of a decision go with its row. */
export const DELETES: readonly Delete[] = [
  { table: 'contests', column: 'request_id', ids: 'contests', scope: 'contests' },
  { table: 'webhook_outbox', column: 'principal', ids: 'contested', scope: null },
  { table: 'overrides', column: 'durable', ids: 'overridden', scope: 'override' },
  { table: 'sightings', column: 'durable', ids: 'devices', scope: 'sightings' },
  { table: 'credentials', column: 'durable', ids: 'devices', scope: 'credentials' },
  { table: 'decisions', column: 'request_id', ids: 'requests', scope: 'decisions' },
  { table: 'links', column: 'request_id', ids: 'requests', scope: 'links' },
  { table: 'links', column: 'request_id', ids: 'linked', scope: 'links' },
  { table: 'signal_summaries', column: 'request_id', ids: 'requests', scope: 'signal-summaries' },
  { table: 'webhook_outbox', column: 'request_id', ids: 'requests', scope: null },
  { table: 'visitor_index', column: 'durable', ids: 'indexed', scope: 'visitor-index' },
  { table: 'network_marks', column: 'durable', ids: 'devices', scope: 'network-marks' },
  { table: 'network_days', column: 'durable', ids: 'devices', scope: 'network-marks' },
];

/** The counts of what was deleted, and the bytes that no file may hold after it. */
export interface Erased {
  readonly counts: ReturnType<typeof emptyTally>;
  readonly requests: readonly string[];
  /** Device ids, visitorIds, and the beginnings of what was written about contests. */
  readonly others: readonly string[];
  /** Devices of which a legal hold keeps rows. */
  readonly heldDevices: readonly string[];
}

/** Divides the rows of an erasure among transactions. */
interface Division {
  /** The places of the erased verdicts in anchored hours, as far as they were read before the transaction. */
  readonly places?: AnchoredPlaces | undefined;
  /**
   * The receipt whose pages delete the requests, because they are more than one transaction should delete.
   */
  readonly leftTo?: string | undefined;
}

/**
 * Deletes the rows of the target: all of them, or, where its requests are left to pages, those that a device
 * has few of.
 */
export async function eraseRows(
  tx: Knex.Transaction,
  target: RowTarget,
  { places, leftTo }: Division = {},
): Promise<Erased> {
  await lockSubject(tx, target);
  const subject = await readSubject(tx, target, leftTo === undefined ? 'whole' : 'begin');
  const { deletedIds, heldDevices } = subject;
  if (leftTo !== undefined) await leaveRequests(tx, target.kid, leftTo, deletedIds);
  const ids = leftTo === undefined ? deletedIds : { ...deletedIds, requests: [] };
  const work = startDeletion(tx, target, places ?? createAnchoredPlaces(target.kid, new Set(ids.requests)));
  await deleteIds(work, target, ids);
  await countKept(work, subject);
  return erasedOf(work, ids, heldDevices);
}

/** Counts the rows that `eraseRows` would delete, without a write. */
export async function countRows(db: Knex, target: RowTarget): Promise<Erased> {
  const subject = await readSubject(db, target);
  const work = startCount(db, target);
  for (const one of DELETES) await runDelete(work, one, subject.deletedIds[one.ids]);
  await countKept(work, subject);
  return erasedOf(work, subject.deletedIds, subject.heldDevices);
}

/**
 * Writes down the requests that pages have to delete: single ones, and those of a device up to its newest.
 */
async function leaveRequests(tx: Knex.Transaction, kid: string, receiptId: string, ids: Ids): Promise<void> {
  const rows = ids.requests.map((id): Bindings => [receiptId, kid, '', id]);
  for (const durable of ids.devices) {
    const newest = tx('decisions').where({ kid, durable }).orderBy('request_id', 'desc');
    rows.push([receiptId, kid, durable, (await cellOf<string>(newest, 'request_id')) ?? '']);
  }
  await insertMany(tx, 'INSERT INTO erasing (receipt_id, kid, durable, request_id)', rows);
}

/** Bytes that no file may hold any more. */
export interface DeletedBytes {
  readonly requests: Set<string>;
  readonly others: Set<string>;
}

interface Pages {
  readonly database: Database;
  readonly clock: Clock;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  /** False stops between two transactions. */
  readonly shouldContinue: () => boolean;
}

/** The fewest requests of a transaction, which costs a dozen statements however few rows it has. */
const PIECE_ROWS = 100;

/**
 * Deletes the requests that the first transaction left, as other nodes may do at the same time.
 * @param deletedBytes takes the bytes of what was deleted; null: those of an earlier page are lost with its
 * process
 * @returns the erasure with what was counted
 */
export async function deletePages(
  { database, clock, tenantOf, shouldContinue }: Pages,
  erasure: StoredErasure,
  deletedBytes: DeletedBytes | null,
): Promise<StoredErasure> {
  const { receiptId, kid, keep } = erasure;
  const tenant = tenantOf(kid);
  // The removal of a tenant deletes these rows, too.
  if (!tenant || !(await hasPages(database, receiptId))) return erasure;
  const target = { ...NOTHING, kid, keep, ...decisionRefs(tenant, clock) };
  const queued: Database = {
    ...database,
    transaction: (work, options) =>
      inTurn(database, kid, () => database.transaction(work, options), { mayRefuse: false }),
  };
  for await (const page of pagesLeft(database, erasure)) {
    const places = await placesOf(database, kid, page);
    const erasePiece = async (tx: Knex.Transaction, requests: readonly string[]): Promise<number> => {
      await lockHead(tx, kid);
      const { deletedIds } = await readSubject(tx, { ...target, requests }, 'page');
      const work = startDeletion(tx, target, places);
      await deleteIds(work, target, deletedIds);
      await addCounts(tx, receiptId, work.counts);
      for (const id of deletedIds.requests) deletedBytes?.requests.add(id);
      for (const bytes of work.bytes) deletedBytes?.others.add(bytes);
      return requests.length;
    };
    await inPieces(queued, page, erasePiece, { minRows: PIECE_ROWS, shouldContinue });
    if (!shouldContinue()) return erasure;
  }
  await database.transaction((tx) => tx('erasing').where({ receipt_id: receiptId }).delete());
  return (await findErasure(database.read, receiptId)) ?? erasure;
}

export const hasPages = async ({ read }: Database, receiptId: string): Promise<boolean> =>
  (await cellOf(read('erasing').where({ receipt_id: receiptId }), 'kid')) !== undefined;

const PAGE = 5000;

/** Yields the requests that an erasure has left to pages, a page at a time, by short reads without a lock. */
async function* pagesLeft({ read }: Database, { receiptId, kid }: StoredErasure) {
  const rest = (await read('erasing').where({ receipt_id: receiptId })) as Readonly<
    Record<'durable' | 'request_id', string>
  >[];
  const singleIds = rest.filter(({ durable }) => durable === '').map((row) => row.request_id);
  yield* chunksOf(singleIds, PAGE);
  for (const { durable, request_id: newest } of rest.filter((row) => row.durable !== '')) {
    const decisions = read('decisions').where({ kid, durable }).where('request_id', '<=', newest);
    const ids = decisions.select('request_id');
    for await (const page of pagesOf<{ readonly request_id: string }>(ids, ['request_id'], PAGE))
      yield page.map((row) => row.request_id);
  }
}

/** Reads the places of these verdicts in their anchored hours, without a lock. */
async function placesOf(
  { read }: Database,
  kid: string,
  requests: readonly string[],
): Promise<AnchoredPlaces> {
  const places = createAnchoredPlaces(kid, new Set(requests));
  const hours = new Set<number>();
  await inChunks(requests, async (ids) => {
    const verdictRows = whereAmong(read('decisions').where({ kid }), read, 'request_id', ids);
    for (const row of await verdictRows.select('decided_at')) hours.add(hourOfVerdict(row));
  });
  await places.prepare(read, hours);
  return places;
}

type Count = ReturnType<typeof startCount>;
type Deletion = ReturnType<typeof startDeletion>;
type Work = Count | Deletion;

const createWork = ({ kid }: RowTarget) => ({ kid, counts: emptyTally(), bytes: [] as string[] });

/** Counts the rows that a deletion would delete. */
const startCount = (db: Knex, target: RowTarget) => ({ ...createWork(target), mode: 'count', db }) as const;

const startDeletion = (db: Knex.Transaction, target: RowTarget, places: AnchoredPlaces) =>
  ({ ...createWork(target), mode: 'delete', db, places, erasedEvents: target.erasedEvents }) as const;

/**
 * The rows of one delete. The day comes first in the keys of the networks, and so each stored day is looked
 * at.
 */
function rowsOf({ db, kid }: Work, { table, column }: Delete, ids: readonly string[]): Knex.QueryBuilder {
  const rows = whereAmong(db(table).where({ kid }), db, column, ids);
  return table === 'network_marks' || table === 'network_days' ? ofStoredDays(rows, table) : rows;
}

async function runDelete(work: Work, one: Delete, allIds: readonly string[]): Promise<void> {
  await inChunks(allIds, async (ids) => {
    const erased = work.mode === 'count' ? countOf(rowsOf(work, one, ids)) : deleteRows(work, one, ids);
    if (one.scope !== null) addCount(work.counts, one.scope, { erased: await erased, retained: 0 });
    else await erased;
  });
}

/** Deletes the rows of these ids, and reads back whether they are gone. @throws {WriteUndone} */
async function deleteIds(work: Deletion, { kid, keep }: RowTarget, ids: Ids): Promise<void> {
  for (const one of DELETES) await runDelete(work, one, ids[one.ids]);
  for (const one of DELETES) {
    // On PostgreSQL another visit of the device may add a row meanwhile.
    if (one.column !== 'request_id' && hasRowLocks(work.db)) continue;
    await inChunks(ids[one.ids], (chunk) =>
      requireNone(
        work.db,
        rowsOf(work, one, chunk).select(one.column),
        `rows in ${one.table} are not erased`,
      ),
    );
  }
  // An override that is kept stays for its device; which request led to it is no longer recorded.
  if (keep.override)
    await inChunks(ids.requests, (chunk) =>
      work.db('overrides').where({ kid }).whereIn('request_id', chunk).update({ request_id: null }),
    );
}

async function deleteRows(work: Deletion, one: Delete, ids: readonly string[]): Promise<number> {
  const tx = work.db;
  const rows = (): Knex.QueryBuilder => rowsOf(work, one, ids);
  await readDeletedBytes(work, one.table, rows);
  if (one.table === 'network_days') return deleteNetworkDays(tx, work.kid, rows());
  if (one.table !== 'visitor_index') return (await rows().delete()) as unknown as number;
  return deleteVisitorIds(tx, work.kid, rows());
}

/**
 * The first characters of a stored ciphertext, with its nonce, are on one page of the file: SQLite may move
 * the rest to other pages.
 */
export const CIPHERTEXT_START = 48;

/**
 * Reads from these rows, before they are deleted, the bytes to search for, the commitments to keep and the
 * events to send.
 */
async function readDeletedBytes(
  work: Deletion,
  table: TableName,
  rows: () => Knex.QueryBuilder,
): Promise<void> {
  const { db, kid, places, bytes, erasedEvents = () => [] } = work;
  if (table === 'contests') {
    for (const row of (await rows().select('case_hash', 'sealed')) as ContestRow[])
      for (const text of [row.case_hash, row.sealed?.slice(0, CIPHERTEXT_START)]) if (text) bytes.push(text);
  } else if (table === 'visitor_index') {
    for (const id of (await rows().pluck('visitor_id')) as string[]) bytes.push(id);
  } else if (table === 'decisions') {
    const verdictRows = (await rows().select('request_id', 'decided_at', 'commitment')) as ErasedVerdict[];
    await keepCommitments(db, kid, verdictRows, places);
    await enqueue(
      db,
      verdictRows.flatMap((row) => erasedEvents(row.request_id)),
    );
  }
}

/** Counts the rows that a legal hold or a person's defence keeps. */
async function countKept(work: Work, { keptIds }: Subject): Promise<void> {
  for (const [basis, allIds] of keptIds)
    for (const one of DELETES)
      await inChunks(allIds[one.ids], async (ids) => {
        if (one.scope === null) return;
        addCount(work.counts, one.scope, {
          erased: 0,
          retained: await countOf(rowsOf(work, one, ids)),
          basis,
        });
      });
}

const erasedOf = ({ counts, bytes }: Work, ids: Ids, heldDevices: readonly string[]): Erased => ({
  counts,
  requests: ids.requests,
  // A device whose visitorIds stay is rightly in the file.
  others: [...bytes, ...ids.indexed],
  heldDevices,
});
