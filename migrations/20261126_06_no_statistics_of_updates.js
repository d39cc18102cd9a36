/**
 * As `20261126_05_no_statistics`, for a table that is younger than its list.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  if (knex.client.dialect === 'sqlite3') return;
  const forget = 'ALTER COLUMN ?? SET STATISTICS 0, ALTER COLUMN ?? TYPE text';
  const columns = ['earlier', 'request_id'];
  await knex.raw(
    `ALTER TABLE decision_updates ${columns.map(() => forget).join(', ')}`,
    columns.flatMap((name) => [name, name]),
  );
}
