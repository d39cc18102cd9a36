// Web Bot Auth: key directories of declared agents, and the signature nonces that were seen.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('agent_directories', (t) => {
    t.text('url').primary();
    // `pinned` keys were given by an operator and are never fetched; `listed` and `discovered` are.
    t.text('source').notNullable();
    t.text('keys').notNullable();
    t.bigInteger('fetched_at').nullable();
    t.bigInteger('tried_at').nullable();
    t.text('failure').nullable();
    t.bigInteger('created_at').notNullable();
  });
  await knex.schema.createTable('agent_nonces', (t) => {
    t.text('nonce').primary();
    t.bigInteger('expires_at').notNullable().index();
  });
  await knex('revisions').insert({ scope: 'agents', revision: 0 });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex('revisions').where({ scope: 'agents' }).delete();
  await knex.schema.dropTable('agent_nonces');
  await knex.schema.dropTable('agent_directories');
}
