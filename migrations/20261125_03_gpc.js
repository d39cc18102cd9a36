/** @typedef {import('knex').Knex} Knex */

/**
 * The grant was made over a Global Privacy Control signal (contract-2 section 13); null for every other event. Its MAC covers it.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('consent_state', (t) => {
    t.boolean('over_gpc').nullable();
  });
}
