// The visitor ids of a device, from the index alone: without the epoch in it SQLite read the tenant's whole table instead.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.raw('CREATE INDEX visitor_index_device ON visitor_index (kid, durable, epoch)');
  await knex.raw('DROP INDEX visitor_index_durable');
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.raw('CREATE INDEX visitor_index_durable ON visitor_index (kid, durable)');
  await knex.raw('DROP INDEX visitor_index_device');
}
