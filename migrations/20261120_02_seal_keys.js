// Seal-key generations: staged, published, retiring, destroyed. A destroyed row has no private key any more.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('seal_keys', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.integer('generation').notNullable();
    t.text('state').notNullable();
    t.text('public_key').notNullable();
    t.text('wrapped_private').nullable();
    t.bigInteger('created_at').notNullable();
    t.bigInteger('published_at').nullable();
    t.bigInteger('retires_at').nullable();
    t.bigInteger('destroyed_at').nullable();
    t.primary(['kid', 'generation']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('seal_keys');
}
