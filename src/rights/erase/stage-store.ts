import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { inPieces, purge } from '../../db/purge.ts';
import { type Bindings, hasRowLocks, insertMany, pagesOf, whereAmong } from '../../db/sql.ts';
import { holdTenant } from '../../db/tenant-hold.ts';
import { markedBetween, unstaged } from '../../ingest/erasing-store.ts';
import { BESIDE_DECISIONS, type RequestRow, type RowTarget, requestsOf } from './find-store.ts';

/** The first part of a large erasure (ADR 0028): its requests are staged, in steps and without the lock of the tenant's log. */

export interface Staged {
  readonly receiptId: string;
  readonly target: RowTarget;
  readonly at: number;
  readonly requests: Map<string, string | null>;
  /** Those whose decision was deleted before. */
  readonly withoutDecision: Set<string>;
  /** What {@link visitsOf} said before the decisions were read; not said: they are read again with the mark. */
  visits?: string;
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
export const MIN_STEP = 100;
const PAGE = 5000;

/** Decisions of a device, by short reads. */
async function requestsOfDevice({ read }: Database, kid: string, durable: string): Promise<string[]> {
  const ids: string[] = [];
  const query = read('decisions').where({ kid, durable }).select('request_id');
  for await (const page of pagesOf<{ request_id: string }>(query, ['request_id'], PAGE))
    for (const { request_id: id } of page) ids.push(id);
  return ids;
}

/**
 * Changes with each visit of the target's devices; empty where one of them has no sighting, and nothing tells.
 * @param db in the transaction that marks no further visit is recorded until it ends
 */
async function visitsOf(db: Knex, { kid, durables }: RowTarget): Promise<string> {
  const rows = whereAmong(db('sightings').where({ kid }), db, 'durable', durables).orderBy('durable');
  if (db.isTransaction && hasRowLocks(db)) rows.forUpdate();
  const found = (await rows.select('durable', 'seen')) as object[];
  return found.length === durables.length ? JSON.stringify(found) : '';
}

/** Decisions of the target's devices that are not staged. */
async function stageNew(db: Knex, staged: Staged, stage: (rows: readonly RequestRow[]) => Promise<void>) {
  const { receiptId, target } = staged;
  for (const durable of target.durables) {
    const came = db('decisions').where({ kid: target.kid, durable }).select('request_id', 'durable');
    await stage((await unstaged(came, receiptId)) as RequestRow[]);
  }
}

const LOOKS = 3;

/** Stages what came while the many were staged, so that the mark, which holds the tenant's log, has none of them to look for. */
async function catchUp(database: Database, staged: Staged): Promise<void> {
  for (let look = 0; look < LOOKS; look += 1) {
    const visits = await visitsOf(database.read, staged.target);
    if (look > 0 && visits === staged.visits) return;
    staged.visits = visits;
    await stageNew(database.read, staged, (rows) =>
      database.transaction((tx) => stageRows(tx, staged, rows)),
    );
  }
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
    await inPieces(database, await requestsOfDevice(database, kid, durable), stage, { minRows: MIN_STEP });
  }
  const stage = async (tx: Knex.Transaction, ids: readonly string[]): Promise<number> => {
    const found = whereAmong(tx('decisions').where({ kid }), tx, 'request_id', ids);
    const own = (await found.select('request_id', 'durable')) as RequestRow[];
    await stageRows(tx, staged, own);
    return own.length;
  };
  await inPieces(database, requests, stage, { minRows: MIN_STEP });
  await catchUp(database, staged);
}

/**
 * Stages what came since. Idempotent: PostgreSQL may roll the transaction back and run it again.
 * @returns whether no decision was left out
 */
export async function stageRest(tx: Knex.Transaction, staged: Staged): Promise<boolean> {
  const { target, requests, withoutDecision } = staged;
  const visits = await visitsOf(tx, target);
  const quiet = visits !== '' && visits === staged.visits;
  if (!quiet) await stageNew(tx, staged, (rows) => stageRows(tx, staged, rows));
  const beside = await requestsOf(tx, target, BESIDE_DECISIONS);
  const others = [...beside].filter(([id]) => !requests.has(id) || withoutDecision.has(id));
  await stageRows(
    tx,
    staged,
    others.map(([id, durable]) => ({ request_id: id, durable })),
  );
  for (const [id] of others) withoutDecision.add(id);
  // SQLite has one writer.
  return quiet || !hasRowLocks(tx);
}

/** Deletes what was staged and never marked. */
const forget = (database: Database, narrow: (rows: Knex.QueryBuilder) => Knex.QueryBuilder) =>
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
