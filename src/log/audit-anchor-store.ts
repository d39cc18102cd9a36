import type { Knex } from 'knex';
import { type AuditFields, auditText } from '../audit/audit.ts';
import type { Database } from '../db/db.ts';
import { pagesOf } from '../db/sql.ts';
import { commitAudit } from '../ledger/commitment.ts';
import { HOUR } from '../lib/clock.ts';
import { type AnchoredTable, anchorHours, PIECE } from './hourly-anchor-store.ts';

/** The audit log, anchored by the hour. */

function hourOf(db: Knex, kid: string, hour: number): Knex.QueryBuilder {
  return db('audit_log')
    .where({ kid })
    .where('at', '>=', hour)
    .where('at', '<', hour + HOUR);
}

interface Row extends AuditFields {
  readonly seq: number;
  readonly salt: string;
  readonly commitment: string;
}

async function* changedRows({ read }: Database, kid: string, hour: number): AsyncGenerator<string> {
  for await (const rows of pagesOf<Row>(hourOf(read, kid, hour), ['seq'], PIECE))
    for (const row of rows)
      if (commitAudit(Buffer.from(row.salt, 'base64url'), kid, auditText(row)) !== row.commitment)
        yield `audit row ${row.seq} was changed`;
}

export const AUDIT: AnchoredTable = {
  type: 'audit.sealed',
  rows: 'audit_log',
  at: 'at',
  anchors: 'audit_seals',
  anchoredTo: 'audit_sealed_to',
  noun: 'audit rows',
  read: async (db, kid, hour) => {
    const commitments = (await hourOf(db, kid, hour).orderBy('seq').pluck('commitment')) as string[];
    return { commitments, live: commitments.length };
  },
  changed: changedRows,
};

export function anchorAudit(database: Database, kid: string, now: number): Promise<number> {
  return anchorHours(database, AUDIT, kid, now);
}
