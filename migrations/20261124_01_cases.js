/** @typedef {import('knex').Knex} Knex */

/**
 * A contest without an account (contract-2 section 15): the keyed hash of its case key, the network that filed it, hashed under a
 * key of that day, and when the reviewer's question was answered. The answer and the e-mail address are sealed with the other texts.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.text('case_hash').nullable().unique();
    t.text('case_network').nullable();
    t.bigInteger('answered_at').nullable();
    t.index(['kid', 'case_network']);
  });
}
