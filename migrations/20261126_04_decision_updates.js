/**
 * Which decision a later one of the same browser session supersedes (contract-2 section 18, ADR 0054). Goes with either of the two.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  await knex.schema.createTable('decision_updates', (t) => {
    for (const name of ['kid', 'earlier', 'request_id']) t.text(name).notNullable();
    t.primary(['kid', 'earlier']);
    t.unique(['kid', 'request_id']);
    for (const name of ['earlier', 'request_id'])
      t.foreign(['kid', name]).references(['kid', 'request_id']).inTable('decisions').onDelete('CASCADE');
  });
}
