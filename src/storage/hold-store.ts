import type { Knex } from 'knex';
import type { Requester, Scope } from '../rights/erase.ts';
import type { Database } from './db.ts';

/** Legal holds: what an erasure counts instead of deleting, device by device and scope by scope. */

export interface LegalHold {
  readonly kid: string;
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
  readonly createdAt: number;
  /** An erasure met it and runs when the last hold of the device is released. */
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

function rowToHold(row: Row): LegalHold {
  const { kid, durable, scope, basis } = row;
  return {
    kid,
    durable,
    scope,
    basis,
    createdAt: Number(row.created_at),
    requestedBy: row.requested_by,
  };
}

/** One that is there already keeps its basis and its time. */
export async function placeHold(tx: Knex.Transaction, hold: Omit<LegalHold, 'requestedBy'>): Promise<void> {
  const { kid, durable, scope, basis, createdAt } = hold;
  const row: Row = { kid, durable, scope, basis, created_at: createdAt, requested_by: null };
  await tx('legal_holds').insert(row).onConflict(['kid', 'durable', 'scope']).ignore();
}

/** @returns the hold as it was; null when it is gone already */
export async function releaseHold(
  tx: Knex.Transaction,
  key: Pick<LegalHold, 'kid' | 'durable' | 'scope'>,
): Promise<LegalHold | null> {
  const row = await tx<Row>('legal_holds').where(key).first<Row | undefined>();
  if (!row || (await tx('legal_holds').where(key).delete()) !== 1) return null;
  return rowToHold(row);
}

/** The oldest first. */
export async function listHolds(
  database: Database,
  kid: string,
  durables?: readonly string[],
): Promise<readonly LegalHold[]> {
  const query = database.read<Row>('legal_holds').where({ kid });
  if (durables !== undefined) query.whereIn('durable', [...durables]);
  const rows = await query.orderBy(['created_at', 'durable', 'scope']).limit(1000);
  return (rows as Row[]).map(rowToHold);
}
