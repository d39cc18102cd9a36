/** What retention deletes from day by day (src/rights/subject-data.ts), and the networks of a day. */
const TABLES = [
  'decisions',
  'contests',
  'links',
  'sightings',
  'credentials',
  'visitor_index',
  'audit_log',
  'network_days',
];

/**
 * Of 90 days that are kept one is a hundredth. By default autovacuum waits until a fifth of a table is dead, which is 18 days of it: room that is
 * not used again, in the indexes too (ADR 0053).
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  if (knex.client.dialect === 'sqlite3') return;
  for (const table of TABLES)
    await knex.raw('ALTER TABLE ?? SET (autovacuum_vacuum_scale_factor = 0.02)', [table]);
}
