// Who shares an id: client networks of a device, as salted hashes that live one day, and counts that outlive them.

/**
 * The day comes first in the keys: what is over is one range at the start of the table, and needs no index of its own.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  const suffix = knex.client.dialect === 'sqlite3' ? ' WITHOUT ROWID' : '';
  await knex.raw(
    `CREATE TABLE network_marks (day integer NOT NULL, kid text NOT NULL, durable text NOT NULL,
      network text NOT NULL, PRIMARY KEY (day, kid, durable, network))${suffix}`,
  );
  await knex.raw(
    `CREATE TABLE network_days (day integer NOT NULL, kid text NOT NULL, durable text NOT NULL,
      networks integer NOT NULL, PRIMARY KEY (day, kid, durable))${suffix}`,
  );
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
