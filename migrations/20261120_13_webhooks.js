// Webhooks and their outbox. A waiting event names a decision or holds a sealed payload: no id of a person in the clear.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('webhooks', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.text('id').notNullable();
    t.text('url').notNullable();
    t.text('events').notNullable();
    t.boolean('allow_private').notNullable();
    t.text('wrapped_secret').notNullable();
    t.bigInteger('created_at').notNullable();
    t.primary(['kid', 'id']);
  });
  await knex.schema.createTable('webhook_outbox', (t) => {
    t.bigIncrements('seq');
    t.text('kid').notNullable();
    t.text('webhook').notNullable();
    t.text('event').notNullable();
    t.text('request_id').nullable();
    t.text('principal').nullable();
    t.text('sealed').nullable();
    t.bigInteger('created_at').notNullable();
    t.text('state').notNullable();
    t.integer('attempts').notNullable();
    t.bigInteger('next_at').notNullable();
    t.text('failure').nullable();
    t.index(['state', 'next_at']);
    t.index(['kid', 'webhook', 'seq']);
    t.index(['kid', 'principal']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('webhook_outbox');
  await knex.schema.dropTable('webhooks');
}
