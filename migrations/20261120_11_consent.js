// Consent: who (by keyed reference) said what last, what opens the log's commitments, policies, sessions, idempotency.

/**
 * What every decision reads: on SQLite the table is the index of its key (WITHOUT ROWID), one descent a row.
 * @param {import('knex').Knex} knex
 * @param {string} body
 */
async function createKeyed(knex, body) {
  const sqlite = knex.client.dialect === 'sqlite3';
  await knex.raw(`CREATE TABLE ${body}${sqlite ? ' WITHOUT ROWID' : ''}`);
}

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  // wrapped_key null: erased, and nothing of this principal opens any more. erased_at: the tombstone.
  await createKeyed(
    knex,
    `consent_principals (kid text NOT NULL, principal text NOT NULL, wrapped_key text, gpc boolean NOT NULL,
      erased_at bigint, PRIMARY KEY (kid, principal))`,
  );
  await createKeyed(
    knex,
    `consent_state (kid text NOT NULL, principal text NOT NULL, purpose text NOT NULL, choice text NOT NULL,
      policy_version integer NOT NULL, expires_at bigint, at bigint NOT NULL, seq bigint NOT NULL, hash text NOT NULL,
      PRIMARY KEY (kid, principal, purpose))`,
  );
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
