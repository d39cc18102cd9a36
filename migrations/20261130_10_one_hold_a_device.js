/** @typedef {import('knex').Knex} Knex */

/**
 * One legal hold a device, and the steps of a large erasure.
 * @param {Knex} knex
 */
export async function up(knex) {
  for (const table of ['legal_holds', 'held_erasures', 'erasing']) await knex.schema.dropTable(table);
  await knex.schema.createTable('legal_holds', (t) => {
    t.text('kid').notNullable();
    t.text('durable').notNullable();
    t.text('basis').notNullable();
    t.bigInteger('created_at').notNullable();
    t.primary(['kid', 'durable']);
  });
  // Of a device up to its newest request, or of one request (the device is empty then).
  await knex.schema.createTable('erasing', (t) => {
    t.text('receipt_id').notNullable();
    t.text('kid').notNullable().index();
    t.text('durable').notNullable();
    t.text('request_id').notNullable();
    t.primary(['receipt_id', 'durable', 'request_id']);
  });
  if (knex.client.dialect === 'sqlite3') return;
  for (const column of ['durable', 'basis'])
    await knex.raw('ALTER TABLE legal_holds ALTER COLUMN ?? SET STATISTICS 0', [column]);
  for (const column of ['receipt_id', 'durable', 'request_id'])
    await knex.raw('ALTER TABLE erasing ALTER COLUMN ?? SET STATISTICS 0', [column]);
}

export async function down() {
  throw new Error('an older database is restored from a backup');
}
