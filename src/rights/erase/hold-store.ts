import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { lockHead } from '../../log/append-store.ts';
import type { Requester, Scope } from './erasure.ts';

/** Legal holds: what an erasure counts instead of deleting, device by device and scope by scope. */

export interface LegalHold {
  readonly kid: string;
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
  readonly createdAt: number;
  /** An erasure of the device, or of a request of it, met it and runs when it is released. */
  readonly requestedBy: Requester | null;
}

interface Row {
  readonly kid: string;
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
  readonly created_at: number;
  readonly requested_by: Requester | null;
}

interface ListedRow extends Row {
  readonly waits: Requester | null;
}

function rowToHold(row: ListedRow): LegalHold {
  const { kid, durable, scope, basis } = row;
  return {
    kid,
    durable,
    scope,
    basis,
    createdAt: Number(row.created_at),
    requestedBy: row.requested_by ?? row.waits,
  };
}

/** One that is there already keeps its basis and its time. */
export async function placeHold(tx: Knex.Transaction, hold: Omit<LegalHold, 'requestedBy'>): Promise<void> {
  const { kid, durable, scope, basis, createdAt } = hold;
  // An erasure takes this lock too: it meets the hold, or was there before it.
  await lockHead(tx, kid);
  const row: Row = { kid, durable, scope, basis, created_at: createdAt, requested_by: null };
  await tx('legal_holds').insert(row).onConflict(['kid', 'durable', 'scope']).ignore();
}

/**
 * Takes the hold away; what had waited for it is due from then on, so that a crash before the erasure loses nothing.
 * @returns whether an erasure had waited; null when the hold is gone already
 */
export async function releaseHold(
  tx: Knex.Transaction,
  key: Pick<LegalHold, 'kid' | 'durable' | 'scope'>,
  now: number,
): Promise<{ readonly waited: boolean } | null> {
  const { kid, durable } = key;
  await lockHead(tx, kid);
  const row = await tx<Row>('legal_holds').where(key).first<Row | undefined>();
  if (!row || (await tx('legal_holds').where(key).delete()) !== 1) return null;
  if (row.requested_by !== null) {
    const whole = { kid, durable, request_id: '', requested_by: row.requested_by, due_at: now };
    await tx('held_erasures').insert(whole).onConflict(['kid', 'durable', 'request_id']).merge();
  }
  const due = await tx('held_erasures').where({ kid, durable }).update({ due_at: now });
  return { waited: Number(due) > 0 };
}

export interface HoldCursor {
  readonly createdAt: number;
  readonly durable: string;
  readonly scope: string;
}

/** A page, the oldest first. */
export async function listHolds(
  database: Database,
  kid: string,
  page: { readonly after?: HoldCursor | null; readonly limit: number; readonly durable?: string },
): Promise<readonly LegalHold[]> {
  const { read } = database;
  const { after = null, limit, durable } = page;
  const waits = read('held_erasures')
    .whereRaw('held_erasures.kid = legal_holds.kid AND held_erasures.durable = legal_holds.durable')
    .orderBy('request_id')
    .limit(1)
    .select('requested_by')
    .as('waits');
  const query = read('legal_holds').where({ kid }).select('legal_holds.*', waits);
  if (durable !== undefined) query.where({ durable });
  if (after !== null)
    query.whereRaw('(created_at, durable, scope) > (?, ?, ?)', [after.createdAt, after.durable, after.scope]);
  const rows = await query.orderBy(['created_at', 'durable', 'scope']).limit(limit);
  return (rows as ListedRow[]).map(rowToHold);
}

const PAGE = 500;

/** Every hold of a tenant, in pages. */
export async function* allHolds(database: Database, kid: string): AsyncGenerator<LegalHold> {
  for (let after: HoldCursor | null = null; ; ) {
    const page: readonly LegalHold[] = await listHolds(database, kid, { after, limit: PAGE });
    yield* page;
    if (page.length < PAGE) return;
    after = page.at(-1) ?? null;
  }
}

/** What a release left to be erased of a device. */
export interface HeldErasure {
  readonly kid: string;
  readonly durable: string;
  readonly requestedBy: Requester;
  /** The whole device, and not only the requests. */
  readonly whole: boolean;
  readonly requests: readonly string[];
}

interface HeldRow {
  readonly kid: string;
  readonly durable: string;
  readonly request_id: string;
  readonly requested_by: Requester;
}

/** Due no later than `before`, one entry a device and requester. */
export async function dueErasures(
  database: Database,
  before: number,
  of?: { readonly kid: string; readonly durable?: string },
): Promise<readonly HeldErasure[]> {
  const query = database.read('held_erasures').where('due_at', '<=', before);
  if (of !== undefined) query.where(of);
  const rows = (await query.orderBy(['kid', 'durable', 'request_id'])) as HeldRow[];
  const found = new Map<string, HeldErasure & { readonly requests: string[] }>();
  for (const { kid, durable, request_id: requestId, requested_by: requestedBy } of rows) {
    const key = JSON.stringify([kid, durable, requestedBy]);
    const { whole = false, requests = [] } = found.get(key) ?? {};
    if (requestId !== '') requests.push(requestId);
    found.set(key, { kid, durable, requestedBy, whole: whole || requestId === '', requests });
  }
  return [...found.values()];
}
