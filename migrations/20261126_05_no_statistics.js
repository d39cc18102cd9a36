/** @typedef {import('knex').Knex} Knex */

/** Tables that name a person (src/rights/subject-data.ts). */
const TABLES = [
  'contests',
  'overrides',
  'decisions',
  'links',
  'signal_summaries',
  'webhook_outbox',
  'sightings',
  'credentials',
  'visitor_index',
  'network_marks',
  'network_days',
  'consent_principals',
  'consent_openings',
  'consent_state',
  'principal_sessions',
  'idempotency_keys',
  'legal_holds',
  'held_erasures',
  'erasing',
];

/** Few values, which tell nobody apart. */
const FEW = [
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
];

/**
 * PostgreSQL samples values of a column for its planner, and shows them by SQL (pg_stats) long after their row is erased. It samples
 * no value of these any more. That alone leaves what was sampled: a column that gets the type that it has loses it, and no row
 * is written anew.
 * @param {Knex} knex
 */
export async function up(knex) {
  if (knex.client.dialect === 'sqlite3') return;
  const columns = await knex('information_schema.columns')
    .whereRaw("table_schema = current_schema() AND data_type = 'text'")
    .whereIn('table_name', TABLES)
    .whereNotIn('column_name', FEW)
    .select('table_name', 'column_name');
  const forget = 'ALTER COLUMN ?? SET STATISTICS 0, ALTER COLUMN ?? TYPE text';
  for (const table of TABLES) {
    const own = columns.filter((column) => column.table_name === table).map((column) => column.column_name);
    const changes = own.map(() => forget).join(', ');
    await knex.raw(`ALTER TABLE ?? ${changes}`, [table, ...own.flatMap((name) => [name, name])]);
  }
}
