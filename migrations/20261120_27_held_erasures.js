// Erasures that a legal hold made wait: of a device, or of single requests of it.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('held_erasures', (t) => {
    t.text('kid').notNullable();
    t.text('durable').notNullable();
    // Empty: the whole device.
    t.text('request_id').notNullable();
    t.text('requested_by').notNullable();
    // Since when nothing keeps it waiting: a release, whose erasure has not run yet.
    t.bigInteger('due_at').nullable().index();
    t.primary(['kid', 'durable', 'request_id']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('held_erasures');
}
