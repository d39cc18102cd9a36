import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { requireNone } from '../../db/sql.ts';
import { pagesBy } from '../../lib/collections.ts';
import { lockHead } from '../../log/entries-store.ts';

/** Legal holds (GDPR articles 17(3) and 18(2)): one per device, which keeps everything of it. */

export interface LegalHold {
  readonly kid: string;
  readonly durable: string;
  readonly basis: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

export type HoldKey = Pick<LegalHold, 'kid' | 'durable'>;

/** Places a hold. A hold that is there keeps its basis and its time. */
export async function placeHold(tx: Knex.Transaction, hold: LegalHold): Promise<void> {
  const { kid, durable, basis, createdAt } = hold;
  // An erasure takes this lock too: it either meets the hold, or was there before the hold.
  await lockHead(tx, kid);
  const row = { kid, durable, basis, created_at: createdAt };
  await tx('legal_holds').insert(row).onConflict(['kid', 'durable']).ignore();
}

/** @returns false when the device is not held */
export async function releaseHold(tx: Knex.Transaction, { kid, durable }: HoldKey): Promise<boolean> {
  await lockHead(tx, kid);
  const hold = tx('legal_holds').where({ kid, durable });
  const deletedCount = (await hold.clone().delete()) as unknown as number;
  await requireNone(tx, hold, 'the legal hold is not released');
  return deletedCount === 1;
}

/**
 * Reads a page of holds, the oldest first.
 * @param isBackward true for the page that ends before `after`
 */
export async function listHolds(
  { read }: Database,
  kid: string,
  {
    after = null,
    isBackward = false,
    limit,
  }: {
    readonly after?: Pick<LegalHold, 'createdAt' | 'durable'> | null;
    readonly isBackward?: boolean;
    readonly limit: number;
  },
): Promise<readonly LegalHold[]> {
  const query = read('legal_holds')
    .where({ kid })
    .select('kid', 'durable', 'basis', { createdAt: 'created_at' });
  const [order, comparison] = isBackward ? ['desc', '<'] : ['asc', '>'];
  if (after !== null)
    query.whereRaw(`(created_at, durable) ${comparison} (?, ?)`, [after.createdAt, after.durable]);
  const sorting = ['created_at', 'durable'].map((column) => ({ column, order }));
  const holds = (await query.orderBy(sorting).limit(limit)) as LegalHold[];
  return isBackward ? holds.toReversed() : holds;
}

const PAGE = 500;

/** Yields every hold of a tenant; reads them in pages. */
export async function* allHolds(database: Database, kid: string): AsyncGenerator<LegalHold> {
  const readPage = (after: LegalHold | undefined) =>
    listHolds(database, kid, { after: after ?? null, limit: PAGE });
  for await (const page of pagesBy(PAGE, readPage)) yield* page;
}
