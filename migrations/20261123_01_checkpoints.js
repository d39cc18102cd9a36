// Signed checkpoints of each log, beside the last one in its head: what is signed next extends them.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('checkpoints', (t) => {
    t.text('kid').notNullable();
    for (const name of ['size', 'at']) t.bigInteger(name).notNullable();
    t.text('note').notNullable();
    t.primary(['kid', 'size']);
  });
  const signed = 'FROM ledger_heads WHERE checkpoint IS NOT NULL';
  await knex.raw(
    `INSERT INTO checkpoints (kid, size, at, note) SELECT kid, checkpoint_size, checkpoint_at, checkpoint ${signed}`,
  );
}
