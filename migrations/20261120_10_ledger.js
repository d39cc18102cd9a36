// One RFC 6962 Merkle log a tenant. Entries hold commitments; what opens them lies apart and can be erased.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  // The row that appenders lock: size, roots of the right edge, the last entry, the last signed checkpoint.
  await knex.schema.createTable('ledger_heads', (t) => {
    t.text('kid').primary().references('kid').inTable('tenants').onDelete('CASCADE');
    t.text('origin').notNullable();
    t.text('vkey').notNullable();
    t.bigInteger('size').notNullable();
    t.text('frontier').notNullable();
    t.text('head_hash').notNullable();
    t.text('checkpoint').nullable();
    t.bigInteger('checkpoint_size').notNullable();
    t.bigInteger('checkpoint_at').notNullable();
  });
  await knex.schema.createTable('ledger_entries', (t) => {
    t.text('kid').notNullable();
    t.bigInteger('seq').notNullable();
    t.text('hash').notNullable();
    t.text('entry').notNullable();
    t.primary(['kid', 'seq']);
  });
  // Roots of complete blocks of 256, 65,536 … entries (level 1, 2 …).
  await knex.schema.createTable('ledger_blocks', (t) => {
    t.text('kid').notNullable();
    t.integer('level').notNullable();
    t.bigInteger('block').notNullable();
    t.text('hash').notNullable();
    t.primary(['kid', 'level', 'block']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  for (const table of ['ledger_blocks', 'ledger_entries', 'ledger_heads']) await knex.schema.dropTable(table);
}
