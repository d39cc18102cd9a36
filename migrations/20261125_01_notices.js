/** @typedef {import('knex').Knex} Knex */

/**
 * Notices and the clock (contract-2 sections 14 and 15). `due_at` is the date that counts; an extension keeps the first one in
 * `extended_from`. `due_notice` and `noticed` say what was told already: each is told once, by whichever node finds it.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.bigInteger('extended_from').nullable();
    // 0: nothing was told, 1: due soon, 2: overdue.
    t.integer('due_notice').notNullable().defaultTo(0);
  });
  await knex.schema.alterTable('erasures', (t) => {
    t.boolean('noticed').notNullable().defaultTo(false);
  });
}
