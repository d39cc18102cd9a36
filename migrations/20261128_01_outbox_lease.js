/**
 * Who takes an event notes it in a column of no index: on PostgreSQL the new version of the row stays on its page (HOT), if that
 * has room. What is asked of a lane is asked by its partial indexes.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('webhook_outbox', (t) => {
    t.bigInteger('leased_until').notNullable().defaultTo(0);
  });
  await knex.raw('DROP INDEX webhook_outbox_kid_webhook_seq_index');
  if (knex.client.dialect !== 'sqlite3') await knex.raw('ALTER TABLE webhook_outbox SET (fillfactor = 50)');
}
