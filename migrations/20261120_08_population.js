// Who shares an id: client networks of a device, as salted hashes that live one day, and counts that outlive them.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('network_marks', (t) => {
    t.text('kid').notNullable();
    t.integer('day').notNullable();
    t.text('durable').notNullable();
    t.text('network').notNullable();
    t.primary(['kid', 'durable', 'day', 'network']);
    t.index(['day']);
  });
  await knex.schema.createTable('network_days', (t) => {
    t.text('kid').notNullable();
    t.text('durable').notNullable();
    t.integer('day').notNullable();
    t.integer('networks').notNullable();
    t.primary(['kid', 'durable', 'day']);
    t.index(['day']);
  });
  // Several shards a tenant and day, so that nodes do not queue for one row.
  await knex.schema.createTable('network_totals', (t) => {
    t.text('kid').notNullable();
    t.integer('day').notNullable();
    t.integer('shard').notNullable();
    t.bigInteger('pairs').notNullable();
    t.primary(['kid', 'day', 'shard']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  for (const table of ['network_totals', 'network_days', 'network_marks']) await knex.schema.dropTable(table);
}
