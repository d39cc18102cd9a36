// Hours whose verdicts were sealed into the log, and the commitments of verdicts that were erased since.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('verdict_seals', (t) => {
    t.text('kid').notNullable();
    t.bigInteger('hour').notNullable();
    t.bigInteger('seq').notNullable();
    t.integer('count').notNullable();
    t.text('root').notNullable();
    t.primary(['kid', 'hour']);
  });
  await knex.schema.createTable('erased_verdicts', (t) => {
    t.text('kid').notNullable();
    t.text('request_id').notNullable();
    t.bigInteger('decided_at').notNullable();
    t.text('commitment').notNullable();
    t.primary(['kid', 'request_id']);
    t.index(['kid', 'decided_at']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('erased_verdicts');
  await knex.schema.dropTable('verdict_seals');
}
