/**
 * Exports of the console are downloads: nothing writes these tables.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  for (const table of ['console_job_parts', 'console_job_subjects', 'console_jobs'])
    await knex.schema.dropTableIfExists(table);
}
