// Consent: who (by keyed reference) said what last, what opens the log's commitments, policies, sessions, idempotency.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  // wrapped_key null: erased, and nothing of this principal opens any more. erased_at: the tombstone.
  await knex.schema.createTable('consent_principals', (t) => {
    t.text('kid').notNullable();
    t.text('principal').notNullable();
    t.text('wrapped_key').nullable();
    t.boolean('gpc').notNullable();
    t.bigInteger('erased_at').nullable();
    t.primary(['kid', 'principal']);
  });
  await knex.schema.createTable('consent_state', (t) => {
    t.text('kid').notNullable();
    t.text('principal').notNullable();
    t.text('purpose').notNullable();
    t.text('choice').notNullable();
    t.integer('policy_version').notNullable();
    t.bigInteger('expires_at').nullable();
    t.bigInteger('at').notNullable();
    t.bigInteger('seq').notNullable();
    t.text('hash').notNullable();
    t.primary(['kid', 'principal', 'purpose']);
  });
  await knex.schema.createTable('consent_openings', (t) => {
    t.text('kid').notNullable();
    t.bigInteger('seq').notNullable();
    t.text('principal').notNullable();
    t.text('purpose').notNullable();
    t.text('choice').notNullable();
    t.bigInteger('at').notNullable();
    t.text('salt').notNullable();
    t.text('detail').notNullable();
    t.primary(['kid', 'seq']);
    t.index(['kid', 'principal', 'seq']);
  });
  await knex.schema.createTable('consent_policies', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.integer('version').notNullable();
    t.text('text').notNullable();
    t.text('sha256').notNullable();
    t.boolean('material').notNullable();
    t.bigInteger('published_at').notNullable();
    t.primary(['kid', 'version']);
  });
  await knex.schema.createTable('principal_sessions', (t) => {
    t.text('hash').primary();
    t.text('kid').notNullable();
    t.text('principal').notNullable();
    t.text('wrapped_principal_id').notNullable();
    t.bigInteger('expires_at').notNullable().index();
  });
  await knex.schema.createTable('idempotency_keys', (t) => {
    t.text('kid').notNullable();
    t.text('caller').notNullable();
    t.text('key').notNullable();
    t.text('body_hash').notNullable();
    t.text('principal').notNullable();
    t.text('answer').notNullable();
    t.bigInteger('expires_at').notNullable().index();
    t.primary(['kid', 'caller', 'key']);
    t.index(['kid', 'principal']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  const tables = [
    'idempotency_keys',
    'principal_sessions',
    'consent_policies',
    'consent_openings',
    'consent_state',
    'consent_principals',
  ];
  for (const table of tables) await knex.schema.dropTable(table);
}
