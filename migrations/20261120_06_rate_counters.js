// Rate counters that several nodes share: a keyed hash of the client under a daily salt, kept two windows at most.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('rate_counters', (t) => {
    t.text('bucket').notNullable();
    t.text('client').notNullable();
    t.bigInteger('window_ends').notNullable().index();
    t.bigInteger('hits').notNullable();
    t.primary(['bucket', 'client', 'window_ends']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('rate_counters');
}
