import type { Knex } from 'knex';
import { cellOf } from '../db/sql.ts';

/** Columns of `ledger_heads`: how far a tenant's verdicts and its audit log are anchored. */
export type AnchoredTo = 'verdicts_sealed_to' | 'audit_sealed_to';

/** The end of the last hour that is anchored; 0 also where there is no log. */
export async function anchoredTo(db: Knex, column: AnchoredTo, kid: string): Promise<number> {
  return (await cellOf<number>(db('ledger_heads').where({ kid }), column)) ?? 0;
}
