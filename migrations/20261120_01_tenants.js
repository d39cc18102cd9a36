// Tenants, their wrapped secrets and the revision counter that running servers poll.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('meta', (t) => {
    t.text('name').primary();
    t.text('value').notNullable();
  });
  // One row a scope; a writer bumps it in its own transaction, so revisions are ordered as commits are.
  await knex.schema.createTable('revisions', (t) => {
    t.text('scope').primary();
    t.bigInteger('revision').notNullable();
  });
  await knex('revisions').insert({ scope: 'tenants', revision: 0 });
  await knex.schema.createTable('tenants', (t) => {
    t.text('kid').primary();
    t.bigInteger('created_at').notNullable();
    t.bigInteger('revision').notNullable().index();
    t.text('settings').notNullable();
  });
  await knex.schema.createTable('tenant_secrets', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.text('purpose').notNullable();
    t.text('wrapped').notNullable();
    t.primary(['kid', 'purpose']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  for (const table of ['tenant_secrets', 'tenants', 'revisions', 'meta']) await knex.schema.dropTable(table);
}
