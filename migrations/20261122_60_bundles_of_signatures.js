// Web Bot Auth: which bundle used a signature's nonce, so that the same one may be sent again after a 503.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('agent_nonces', (t) => {
    // A hash of the tenant and the bundle's own nonce; empty for those that were used before.
    t.text('bundle').notNullable().defaultTo('');
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('agent_nonces', (t) => {
    t.dropColumn('bundle');
  });
}
