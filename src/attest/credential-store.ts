import type { Database } from '../db/engine.ts';
import { isTrue, runSql, type Transaction } from '../db/sql.ts';

/**
 * Stores passkeys by the keyed hash of their id, which is the durable id of the device that they distinguish.
 */
export type StoredPasskey = Readonly<NonNullable<Awaited<ReturnType<typeof findCredential>>>>;

interface CredentialKey {
  readonly kid: string;
  readonly durable: string;
}

export async function findCredential({ read }: Database, { kid, durable }: CredentialKey) {
  const row = await read('credentials')
    .where({ kid, durable })
    .first<{ public_key: string; counter: number; device_bound: unknown } | undefined>();
  return row
    ? { publicKey: row.public_key, counter: Number(row.counter), deviceBound: isTrue(row.device_bound) }
    : null;
}

/** @returns false if it exists already */
export async function addCredential(
  tx: Transaction,
  { kid, durable }: CredentialKey,
  { publicKey, counter, deviceBound }: StoredPasskey,
  now: number,
): Promise<boolean> {
  const added = await runSql(
    tx,
    `INSERT INTO credentials (kid, durable, public_key, counter, device_bound, created_at, last_at)
      VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING kid`,
    [kid, durable, publicKey, counter, deviceBound, now, now],
  );
  return added.length === 1;
}

/** @returns false if it was erased, or another ceremony used it meanwhile */
export async function takeCredential(
  tx: Transaction,
  { kid, durable }: CredentialKey,
  counters: { readonly from: number; readonly to: number },
  now: number,
): Promise<boolean> {
  const updatedRows = await runSql(
    tx,
    'UPDATE credentials SET counter = ?, last_at = ? WHERE kid = ? AND durable = ? AND counter = ? RETURNING kid',
    [counters.to, now, kid, durable, counters.from],
  );
  return updatedRows.length === 1;
}
