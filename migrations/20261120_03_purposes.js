// Purposes of processing, with what a Global Privacy Control signal does to each.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('purposes', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.text('id').notNullable();
    t.text('title').notNullable();
    t.text('description').notNullable();
    t.text('lawful_basis').notNullable();
    t.text('gpc').notNullable();
    t.integer('ttl_days').notNullable();
    t.primary(['kid', 'id']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('purposes');
}
