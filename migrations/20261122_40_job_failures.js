// Jobs of the housekeeping that fail, each with the tenant that it fails for: gpd doctor names them.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('job_failures', (t) => {
    // Empty: the job is not about one tenant, or could not even list them.
    t.text('kid').notNullable();
    t.text('job').notNullable();
    t.bigInteger('since').notNullable();
    t.bigInteger('failed_at').notNullable();
    // Name and code of the error: its message may quote what was bound.
    t.text('reason').notNullable();
    t.primary(['kid', 'job']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('job_failures');
}
