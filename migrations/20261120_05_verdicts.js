// What one accepted bundle leaves: a claimed nonce, a sighting, an index entry and the decision. No raw signal.

/**
 * Small rows under random keys: on SQLite the table is the index of its key (WITHOUT ROWID), so that a row is written
 * once and not twice.
 * @param {import('knex').Knex} knex
 * @param {string} body
 */
async function createKeyed(knex, body) {
  const sqlite = knex.client.dialect === 'sqlite3';
  await knex.raw(`CREATE TABLE ${body}${sqlite ? ' WITHOUT ROWID' : ''}`);
}

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await createKeyed(
    knex,
    `nonces (kid text NOT NULL, nonce text NOT NULL, expires_at bigint NOT NULL, PRIMARY KEY (kid, nonce))`,
  );
  await knex.raw('CREATE INDEX nonces_expires_at ON nonces (expires_at)');
  await createKeyed(
    knex,
    `sightings (kid text NOT NULL, durable text NOT NULL, first_at bigint NOT NULL, last_at bigint NOT NULL,
      seen bigint NOT NULL, epoch integer NOT NULL, PRIMARY KEY (kid, durable))`,
  );
  await createKeyed(
    knex,
    `visitor_index (kid text NOT NULL, visitor_id text NOT NULL, durable text NOT NULL, epoch integer NOT NULL,
      PRIMARY KEY (kid, visitor_id))`,
  );
  await knex.raw('CREATE INDEX visitor_index_durable ON visitor_index (kid, durable)');
  await createKeyed(
    knex,
    `overrides (kid text NOT NULL, durable text NOT NULL, created_at bigint NOT NULL, PRIMARY KEY (kid, durable))`,
  );
  await knex.schema.createTable('decisions', (t) => {
    t.text('kid').notNullable();
    t.text('request_id').notNullable();
    t.bigInteger('decided_at').notNullable();
    t.text('class').notNullable();
    t.text('durable').nullable();
    // The whole verdict as JSON; the commitment is over exactly these bytes.
    t.text('verdict').notNullable();
    t.text('salt').notNullable();
    t.text('commitment').notNullable();
    t.primary(['kid', 'request_id']);
    t.index(['kid', 'durable']);
    t.index(['kid', 'decided_at']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  for (const table of ['decisions', 'overrides', 'visitor_index', 'sightings', 'nonces']) {
    await knex.schema.dropTable(table);
  }
}
