import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { type Bindings, insertMany, toColumns, whereAmong } from '../../db/sql.ts';
import { isoTime } from '../../lib/clock.ts';
import { inChunks } from '../../lib/collections.ts';
import { type ErasureReceipt, storedErasureSchema } from '../../schema/rights.ts';
import {
  type ErasureRef,
  heldRows,
  isIncomplete,
  type Keep,
  type ScopeResult,
  type Tally,
  withCounts,
} from './erasure-service.ts';

/** An erasure as it is stored: what it did and how far it got. It names nobody. */
export interface StoredErasure
  extends Pick<ErasureReceipt, 'receiptId' | 'subject' | 'requestedBy' | 'scopes'> {
  readonly kid: string;
  readonly erasedAt: number;
  /** Keyed references for the tombstone. */
  readonly refs: readonly ErasureRef[];
  readonly keep: Keep;
  /** Keyed references of devices of which a legal hold kept rows. */
  readonly held?: readonly string[] | undefined;
  /**
   * `open`: its line is not on disk outside the database yet; `logged`: the line is; `done`: no server has
   * anything left to do.
   */
  readonly state: 'open' | 'logged' | 'done';
  /**
   * When no file of the database held its bytes any more: the erasure is complete. An erasure that is done
   * without it waits for `gpd erase scrub`, because the files of PostgreSQL may hold them.
   */
  readonly filesCleanAt: number | null;
}

interface Row extends Omit<StoredErasure, 'scopes' | 'refs' | 'keep' | 'held'> {
  readonly scopes: string;
  readonly refs: string;
}

const NEWEST = ['erased_at', 'receipt_id'].map((column) => ({ column, order: 'desc' }));

const rows = (db: Knex) =>
  db('erasures').select<Row[]>('kid', 'subject', 'scopes', 'refs', 'state', {
    receiptId: 'receipt_id',
    requestedBy: 'requested_by',
    erasedAt: 'erased_at',
    filesCleanAt: 'files_clean_at',
  });

/**
 * A stored receipt that does not parse. The error has no cause and quotes nothing: the words of a parser hold
 * a piece of the row.
 */
export class UnreadableErasure extends Error {
  readonly receiptId: string;
  readonly kid: string;
  constructor(receiptId: string, kid: string) {
    super(`the stored receipt ${receiptId} cannot be read; restore a backup`);
    this.name = 'UnreadableErasure';
    this.receiptId = receiptId;
    this.kid = kid;
  }
}

/** @throws {UnreadableErasure} */
function rowToErasure(row: Row): StoredErasure {
  try {
    const stored = storedErasureSchema.parse({
      ...(JSON.parse(row.refs) as object),
      scopes: JSON.parse(row.scopes) as unknown,
    });
    return { ...row, ...stored, scopes: stored.scopes as ScopeResult[] };
  } catch {
    throw new UnreadableErasure(row.receiptId, row.kid);
  }
}

export function receiptOf({ kid: tenant, erasedAt, scopes, ...erasure }: StoredErasure): ErasureReceipt {
  const { receiptId, subject, requestedBy } = erasure;
  const outcome = { erasedAt: isoTime(erasedAt), scopes, incomplete: isIncomplete(scopes) };
  return { receiptId, tenant, subject, requestedBy, ...outcome };
}

/** Parses rows. A damaged one hides no other. */
function rowsToErasures(rowsFound: readonly Row[]) {
  const erasures: StoredErasure[] = [];
  const unreadable: UnreadableErasure[] = [];
  for (const row of rowsFound) {
    try {
      erasures.push(rowToErasure(row));
    } catch (error) {
      if (!(error instanceof UnreadableErasure)) throw error;
      unreadable.push(error);
    }
  }
  return { erasures, unreadable };
}

/** @param leftRefs keyed references of pairs of a request and the device that the erasure leaves */
export async function insertErasure(
  tx: Knex.Transaction,
  erasure: StoredErasure,
  leftRefs: readonly string[] = [],
): Promise<void> {
  const { scopes, refs, keep, held: heldRefs, ...rest } = erasure;
  const texts = {
    scopes: JSON.stringify(scopes),
    refs: JSON.stringify({ refs, keep, held: heldRefs }),
  };
  await tx('erasures').insert(toColumns({ ...rest, ...texts }));
  const { kid, receiptId } = erasure;
  const keptDevices = heldRows(scopes) > 0 ? (heldRefs ?? []) : [];
  const leftRows = leftRefs.map((ref) => ({ kind: 'left', ref }));
  const refRows = [...refs, ...leftRows, ...keptDevices.map((ref) => ({ kind: 'held', ref }))];
  await insertMany(
    tx,
    'INSERT INTO erasure_refs (kid, ref, kind, receipt)',
    refRows.map(({ kind, ref }): Bindings => [kid, ref, kind, receiptId]),
    'ON CONFLICT DO NOTHING',
  );
}

/**
 * The latest receipt of this subject, or since this moment one that names this request: once a device is
 * erased, its request is all that leads to the receipt.
 */
export async function receiptOfRequest(
  tx: Knex,
  {
    kid,
    subject,
    ref,
    since: recentFrom,
  }: Record<'kid' | 'subject' | 'ref', string> & { readonly since: number },
): Promise<StoredErasure | null> {
  const row = await rows(tx)
    .where({ kid, subject })
    .orWhere((recent) => {
      const naming = tx('erasure_refs').where({ kid, kind: 'request', ref }).select('receipt');
      void recent.where({ kid }).where('erased_at', '>=', recentFrom).whereIn('receipt_id', naming);
    })
    .orderBy(NEWEST)
    .first<Row | undefined>();
  return row ? rowToErasure(row) : null;
}

/** @returns the references of the pairs of receipts that name this request */
export async function leftRefsOf({ read }: Database, kid: string, requestRef: string) {
  const pairs = read('erasure_refs as named')
    .join('erasure_refs as pair', 'pair.receipt', 'named.receipt')
    .where({ 'named.kid': kid, 'named.kind': 'request', 'named.ref': requestRef, 'pair.kind': 'left' });
  return new Set((await pairs.pluck('pair.ref')) as string[]);
}

/** Saves how far an erasure got. @returns the erasure with it */
export async function saveProgress(
  database: Database,
  erasure: StoredErasure,
  progress: Partial<Pick<StoredErasure, 'state' | 'scopes' | 'filesCleanAt'>>,
): Promise<StoredErasure> {
  const { receiptId, state: from } = erasure;
  const { scopes, ...rest } = progress;
  const row = toColumns({ ...rest, ...(scopes && { scopes: JSON.stringify(scopes) }) });
  await database.transaction((tx) =>
    // Another node may have gone on with the erasure.
    tx('erasures').where({ receipt_id: receiptId, state: from }).update(row),
  );
  return { ...erasure, ...progress };
}

/** Adds the counts of one page to the receipt, in the transaction that deletes it. */
export async function addCounts(tx: Knex.Transaction, receiptId: string, counts: Tally): Promise<void> {
  // If another node deleted the page before, it has counted it.
  if (Object.values(counts).every(({ erased }) => erased === 0)) return;
  const erasure = await findErasure(tx, receiptId);
  if (!erasure) return;
  const scopes = JSON.stringify(withCounts(erasure.scopes, counts));
  await tx('erasures').where({ receipt_id: receiptId }).update({ scopes });
}

/** Receipts of a tenant that kept rows under legal holds, the oldest first. */
export async function heldReceipts({ read }: Database, kid: string): Promise<readonly StoredErasure[]> {
  const rowsFound = await rows(read)
    .where({ kid })
    .whereIn('receipt_id', read('erasure_refs').where({ kid, kind: 'held' }).select('receipt'))
    .orderBy(['erased_at', 'receipt_id']);
  return rowsToErasures(rowsFound).erasures;
}

export async function findErasure(db: Knex, receiptId: string): Promise<StoredErasure | null> {
  const row = await rows(db).where({ receipt_id: receiptId }).first<Row | undefined>();
  return row ? rowToErasure(row) : null;
}

/** @returns the ids among these that have a stored receipt */
export async function knownReceipts(database: Database, receiptIds: readonly string[]) {
  const { read } = database;
  const storedIds = await whereAmong(read('erasures'), read, 'receipt_id', receiptIds).pluck('receipt_id');
  return new Set(storedIds as string[]);
}

/** States of erasures that a server finishes automatically. */
export const UNFINISHED = ['open', 'logged'] as const;

/**
 * Reads erasures in these states that are not complete and began no later than `before`, the oldest first.
 */
export async function incompleteErasures(
  { read }: Database,
  states: readonly StoredErasure['state'][],
  before: number,
) {
  const rowsFound = await rows(read)
    .where({ files_clean_at: null })
    .whereIn('state', states)
    .where('erased_at', '<=', before)
    .orderBy(['erased_at', 'receipt_id']);
  return rowsToErasures(rowsFound);
}

/**
 * Receipts of a tenant's erasures that began no earlier than `since`, but those that are open and write their
 * line themselves.
 */
export const receiptsSince = ({ read }: Database, kid: string, since: number): Promise<string[]> =>
  read('erasures')
    .where({ kid })
    .where('erased_at', '>=', since)
    .whereNot({ state: 'open' })
    .pluck('receipt_id');

/** Reads these receipts, except damaged ones. */
export async function erasuresOf(
  { read }: Database,
  receiptIds: readonly string[],
): Promise<StoredErasure[]> {
  const erasures: StoredErasure[] = [];
  await inChunks(receiptIds, async (ids) => {
    erasures.push(...rowsToErasures(await rows(read).whereIn('receipt_id', ids)).erasures);
  });
  return erasures;
}

export interface ErasurePage {
  readonly limit: number;
  /** Id of the receipt after which the page begins; null for the first page. */
  readonly cursor?: string | null;
  /** The page ends before the cursor. */
  readonly isBackward?: boolean;
}

/** Newest first. `ids` has the damaged ones too. */
export async function listErasures({ read }: Database, kid: string, page: ErasurePage) {
  const { limit, cursor = null, isBackward = false } = page;
  const query = rows(read).where({ kid }).limit(limit);
  const at = read('erasures').where({ kid, receipt_id: cursor }).select('erased_at', 'receipt_id');
  if (cursor !== null) query.whereRaw(`(erased_at, receipt_id) ${isBackward ? '>' : '<'} ?`, [at]);
  const found = await query.orderBy(isBackward ? ['erased_at', 'receipt_id'] : NEWEST);
  const newestFirst = isBackward ? found.toReversed() : found;
  return { ...rowsToErasures(newestFirst), ids: newestFirst.map(({ receiptId }) => receiptId) };
}
