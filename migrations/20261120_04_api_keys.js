// Consent API keys: only the SHA-256 of a key is kept.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('api_keys', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.text('id').notNullable();
    t.text('scope').notNullable();
    t.text('name').notNullable();
    t.text('hash').notNullable().unique();
    t.bigInteger('created_at').notNullable();
    t.bigInteger('revoked_at').nullable();
    t.text('last_used_on').nullable();
    t.primary(['kid', 'id']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('api_keys');
}
