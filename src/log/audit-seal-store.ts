import type { Knex } from 'knex';
import { type AuditFields, auditText } from '../audit/audit.ts';
import type { Database } from '../db/db.ts';
import { commitAudit } from '../ledger/commitment.ts';
import { HOUR } from '../lib/clock.ts';
import { checkHours, type SealedTable, sealHours } from './hourly-seal-store.ts';

/** The audit log, sealed by the hour. */

function hourOf(db: Knex, kid: string, hour: number): Knex.QueryBuilder {
  return db('audit_log')
    .where({ kid })
    .where('at', '>=', hour)
    .where('at', '<', hour + HOUR)
    .orderBy('seq');
}

const AUDIT: SealedTable = {
  type: 'audit.sealed',
  rows: 'audit_log',
  at: 'at',
  seals: 'audit_seals',
  sealedTo: 'audit_sealed_to',
  noun: 'audit rows',
  read: async (db, kid, hour) => {
    const commitments = (await hourOf(db, kid, hour).pluck('commitment')) as string[];
    return { commitments, live: commitments.length };
  },
};

export function sealAudit(database: Database, kid: string, now: number): Promise<number> {
  return sealHours(database, AUDIT, kid, now);
}

interface Row extends AuditFields {
  readonly seq: number;
  readonly salt: string;
  readonly commitment: string;
}

function isUnchanged(kid: string, row: Row): boolean {
  return commitAudit(Buffer.from(row.salt, 'base64url'), kid, auditText(row)) === row.commitment;
}

/** Holds every sealed hour against the rows that are there, and every row against its commitment. */
export async function checkAuditSeals(database: Database, kid: string): Promise<readonly string[]> {
  const problems = [...(await checkHours(database, AUDIT, kid))];
  const hours = (await database.read('audit_seals').where({ kid }).orderBy('hour').pluck('hour')) as number[];
  for (const hour of hours) {
    const rows = (await hourOf(database.read, kid, Number(hour)).select('*')) as Row[];
    const altered = rows.filter((row) => !isUnchanged(kid, row));
    problems.push(...altered.map((row) => `audit row ${row.seq} was changed`));
  }
  return problems;
}
