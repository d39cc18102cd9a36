import { type AuditFields, auditText } from '../audit/audit.ts';
import type { Database } from '../db/db.ts';
import { pagesOf } from '../db/sql.ts';
import { commitAudit } from '../ledger/commitment.ts';
import type { EntryMacs } from './entry-check.ts';
import { type AnchoredTable, anchorHours, PIECE, rowsOfHour } from './hourly-anchor-store.ts';

/** The audit log, anchored by the hour. */

interface Row extends AuditFields {
  readonly seq: number;
  readonly salt: string;
  readonly commitment: string;
}

async function* changedRows({ read }: Database, kid: string, hour: number): AsyncGenerator<string> {
  for await (const rows of pagesOf<Row>(rowsOfHour(read, AUDIT, kid, hour), ['seq'], PIECE))
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
    const commitments: string[] = await rowsOfHour(db, AUDIT, kid, hour).orderBy('seq').pluck('commitment');
    return { commitments, live: commitments.length };
  },
  changed: changedRows,
};

export function anchorAudit(database: Database, kid: string, now: number, macs?: EntryMacs): Promise<number> {
  return anchorHours(database, AUDIT, { kid, macs }, now);
}
