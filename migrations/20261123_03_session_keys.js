/** @typedef {import('knex').Knex} Knex */

/**
 * The API key that opened a principal's session, which ends with it. Null: opened by a node of 0.1.0.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('principal_sessions', (t) => {
    t.text('key_id').nullable();
  });
}
