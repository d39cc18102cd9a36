import type { Knex } from 'knex';
import { rowsOf } from './sql.ts';

/** Settings of PostgreSQL that follow from the columns of a table, so that a table which a later migration makes has them too. */

/** A table with one of these columns has rows about persons (src/rights/person-map.ts). */
const PERSONAL = ['durable', 'request_id', 'visitor_id', 'principal', 'subject'];

/** Columns of few values, which tell nobody apart. */
const FEW_VALUES = [
  'kid',
  'class',
  'status',
  'outcome',
  'resolved_role',
  'proposed_outcome',
  'webhook',
  'event',
  'state',
  'purpose',
  'choice',
  'scope',
  'requested_by',
  'step',
];

const OWN = `t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r' AND t.relname NOT LIKE 'knex%'`;

/**
 * PostgreSQL samples values of a column for its planner and shows them by SQL (pg_stats) long after their row is erased. It samples
 * none of a table about persons, but for columns of few values.
 */
async function sampleNobody(tx: Knex.Transaction): Promise<void> {
  const sql = `SELECT t.relname AS name, a.attname AS col FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
    WHERE ${OWN} AND a.atttypid IN ('text'::regtype, 'bytea'::regtype) AND NOT a.attisdropped
      AND a.attname <> ALL(?) AND a.attstattarget IS DISTINCT FROM 0
      AND EXISTS (SELECT 1 FROM pg_attribute p WHERE p.attrelid = t.oid AND p.attname = ANY(?) AND NOT p.attisdropped)`;
  const columns = rowsOf<{ name: string; col: string }>(await tx.raw(sql, [FEW_VALUES, PERSONAL]));
  for (const { name, col } of columns)
    await tx.raw('ALTER TABLE ?? ALTER COLUMN ?? SET STATISTICS 0', [name, col]);
}

/**
 * Of 90 days that are kept one is a hundredth, and what expires in minutes is dead soon. By default autovacuum waits until a fifth of a
 * table is dead: room that is not used again, in the indexes too (ADR 0053).
 */
async function vacuumSoon(tx: Knex.Transaction): Promise<void> {
  const sql = `SELECT t.relname AS name FROM pg_class t WHERE ${OWN}
    AND NOT EXISTS (SELECT 1 FROM unnest(t.reloptions) o WHERE o LIKE 'autovacuum_vacuum_scale_factor=%')`;
  for (const { name } of rowsOf<{ name: string }>(await tx.raw(sql)))
    await tx.raw('ALTER TABLE ?? SET (autovacuum_vacuum_scale_factor = 0.02)', [name]);
}

/** After each migration, in its transaction: nothing was sampled in between. Tables that have their settings are not locked. */
export async function setUpTables(tx: Knex.Transaction): Promise<void> {
  await sampleNobody(tx);
  await vacuumSoon(tx);
}
