// A repeated request of a person finds the receipt of the first.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.raw('CREATE INDEX erasures_subject ON erasures (kid, subject)');
}
