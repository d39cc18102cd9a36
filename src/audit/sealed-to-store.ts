import type { Knex } from 'knex';
import { cellOf } from '../db/sql.ts';

/** Columns of `ledger_heads`: how far a tenant's verdicts and its audit log are sealed. */
export type SealedTo = 'verdicts_sealed_to' | 'audit_sealed_to';

/** The end of the last hour that is sealed; 0 also where there is no log. */
export async function sealedTo(db: Knex, column: SealedTo, kid: string): Promise<number> {
  return (await cellOf<number>(db('ledger_heads').where({ kid }), column)) ?? 0;
}
