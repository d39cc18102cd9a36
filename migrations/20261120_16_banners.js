// What consent banners showed: the texts as they were, and the entry of the log that says so.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('banners', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.bigInteger('seq').notNullable();
    t.bigInteger('revision').notNullable();
    t.text('texts_sha256').notNullable();
    t.text('script_sha256').notNullable();
    t.text('texts').notNullable();
    t.bigInteger('published_at').notNullable();
    t.primary(['kid', 'seq']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('banners');
}
