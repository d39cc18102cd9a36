/**
 * Lines of witnesses (C2SP tlog-cosignature) under a checkpoint; empty: nobody cosigned it.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('checkpoints', (t) => {
    t.text('cosignatures').notNullable().defaultTo('');
  });
}
