import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { writeMeta } from '../../db/meta-store.ts';
import { cellOf } from '../../db/sql.ts';

/** The installation's identity for exports: a certificate and its private key, wrapped by the master key. */
export interface StoredSigner {
  /** PEM. */
  readonly certificate: string;
  readonly wrappedKey: string;
}

const NAME = 'archive-signer';

/** One row, so that nobody reads the key of one and the certificate of another. */
async function signerIn(rows: Knex.QueryBuilder): Promise<StoredSigner | null> {
  const value = await cellOf<string>(rows.where({ name: NAME }), 'value');
  return value === undefined ? null : (JSON.parse(value) as StoredSigner);
}

export const readArchiveSigner = ({ read }: Database) => signerIn(read('meta'));

/**
 * Writes it unless another process was faster.
 * @param replaces the expired certificate, or null
 * @returns the one that holds
 */
export function saveArchiveSigner(database: Database, signer: StoredSigner, replaces: string | null) {
  const value = JSON.stringify(signer);
  return database.transaction(async (tx) => {
    await tx('meta').insert({ name: NAME, value }).onConflict('name').ignore();
    const held = await signerIn(tx('meta').forUpdate());
    if (held?.certificate !== replaces) return held ?? signer;
    await writeMeta(tx, NAME, value);
    return signer;
  });
}

/** @returns how many there were */
export async function rewrapArchiveSigner(tx: Knex.Transaction, rewrap: (wrapped: string) => string) {
  const held = await signerIn(tx('meta').forUpdate());
  if (!held) return 0;
  const { certificate, wrappedKey } = held;
  await writeMeta(tx, NAME, JSON.stringify({ certificate, wrappedKey: rewrap(wrappedKey) }));
  return 1;
}
