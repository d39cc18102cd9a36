import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { inChunks, pagesBy } from '../../lib/chunks.ts';
import { lockHead } from '../../log/append-store.ts';
import { ERASURE_SCOPES } from '../../schema/rights.ts';
import { LED_TO } from '../subject-folds.ts';
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

/** One that is there already keeps its basis and its time. */
export async function placeHold(tx: Knex.Transaction, hold: Omit<LegalHold, 'requestedBy'>): Promise<void> {
  const { kid, durable, scope, basis, createdAt } = hold;
  // An erasure takes this lock too: it meets the hold, or was there before it.
  await lockHead(tx, kid);
  const row = { kid, durable, scope, basis, created_at: createdAt, requested_by: null };
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
  const row = await tx('legal_holds').where(key).first<{ by: Requester | null } | undefined>({
    by: 'requested_by',
  });
  if (!row || (await tx('legal_holds').where(key).delete()) !== 1) return null;
  if (row.by !== null) {
    const whole = { kid, durable, request_id: '', requested_by: row.by, due_at: now };
    await tx('held_erasures').insert(whole).onConflict(['kid', 'durable', 'request_id']).merge();
  }
  const due = await tx('held_erasures').where({ kid, durable }).update({ due_at: now });
  return { waited: Number(due) > 0 };
}

/** A page, the oldest first. */
export async function listHolds(
  database: Database,
  kid: string,
  page: {
    readonly after?: Pick<LegalHold, 'createdAt' | 'durable' | 'scope'> | null;
    readonly limit: number;
    readonly durable?: string;
  },
): Promise<readonly LegalHold[]> {
  const { read } = database;
  const { after = null, limit, durable } = page;
  const waits = read('held_erasures')
    .whereRaw('held_erasures.kid = legal_holds.kid AND held_erasures.durable = legal_holds.durable')
    .orderBy('request_id')
    .limit(1)
    .select('requested_by');
  const query = read('legal_holds')
    .where({ kid })
    .select('kid', 'durable', 'scope', 'basis', { createdAt: 'created_at' })
    .select(read.raw('coalesce(requested_by, ?) AS ??', [waits, 'requestedBy']));
  if (durable !== undefined) query.where({ durable });
  if (after !== null)
    query.whereRaw('(created_at, durable, scope) > (?, ?, ?)', [after.createdAt, after.durable, after.scope]);
  return (await query.orderBy(['created_at', 'durable', 'scope']).limit(limit)) as LegalHold[];
}

const PAGE = 500;

/** Every hold of a tenant, in pages. */
export async function* allHolds(database: Database, kid: string): AsyncGenerator<LegalHold> {
  const read = (after: LegalHold | undefined) =>
    listHolds(database, kid, { after: after ?? null, limit: PAGE });
  for await (const page of pagesBy(PAGE, read)) yield* page;
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

/** Due no later than `before`, one entry a device and requester. */
export async function dueErasures(
  database: Database,
  before: number,
  of?: { readonly kid: string; readonly durable?: string },
): Promise<readonly HeldErasure[]> {
  const query = database.read('held_erasures').where('due_at', '<=', before);
  if (of !== undefined) query.where(of);
  const rows = (await query
    .orderBy(['kid', 'durable', 'request_id'])
    .select('kid', 'durable', { requestId: 'request_id', requestedBy: 'requested_by' })) as (Omit<
    HeldErasure,
    'whole' | 'requests'
  > & { readonly requestId: string })[];
  const found = new Map<string, HeldErasure & { readonly requests: string[] }>();
  for (const { kid, durable, requestId, requestedBy } of rows) {
    const key = JSON.stringify([kid, durable, requestedBy]);
    const { whole = false, requests = [] } = found.get(key) ?? {};
    if (requestId !== '') requests.push(requestId);
    found.set(key, { kid, durable, requestedBy, whole: whole || requestId === '', requests });
  }
  return [...found.values()];
}

/** What legal holds keep of an erasure's rows: device by device, and not of the others that it was asked for with. */
export type Holds = Awaited<ReturnType<typeof holdsOn>>;

/** Holds of any of these kinds keep rows of this kind, in an erasure and in retention. */
export const heldWith = (scope: Scope): readonly Scope[] =>
  scope === 'visitor-index' ? [scope, ...LED_TO] : [scope];

/** @param counts which holds count: one placed after the mark keeps nothing that was marked */
export async function holdsOn(
  tx: Knex,
  kid: string,
  durables: readonly string[],
  counts: (durable: string, scope: Scope) => boolean = () => true,
) {
  const found = new Map<string, string>();
  const devices = new Set<string>();
  /** Devices whose whole erasure waits for a release. */
  const waiting = new Set<string>();
  await inChunks(durables, async (some) => {
    const rows = (await tx('legal_holds')
      .where({ kid })
      .whereIn('durable', some)
      .select('durable', 'scope', 'basis', { requestedBy: 'requested_by' })) as LegalHold[];
    for (const { durable, scope, basis, requestedBy } of rows) {
      if (!counts(durable, scope)) continue;
      found.set(`${scope} ${durable}`, basis);
      devices.add(durable);
      if (requestedBy !== null) waiting.add(durable);
    }
  });
  /** The basis on which these rows of the device stay; undefined: nothing keeps them. */
  const basis = (scope: Scope, durable: string | null | undefined): string | undefined =>
    heldWith(scope)
      .map((held) => found.get(`${held} ${durable ?? ''}`))
      .find((known) => known !== undefined);
  const scopes = (durable: string): Scope[] =>
    ERASURE_SCOPES.filter((scope) => found.has(`${scope} ${durable}`));
  return { devices, scopes, waiting, basis };
}
