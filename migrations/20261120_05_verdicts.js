// What one accepted bundle leaves: a claimed nonce, a sighting, an index entry and the decision. No raw signal.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('nonces', (t) => {
    t.text('kid').notNullable();
    t.text('nonce').notNullable();
    t.bigInteger('expires_at').notNullable().index();
    t.primary(['kid', 'nonce']);
  });
  await knex.schema.createTable('sightings', (t) => {
    t.text('kid').notNullable();
    t.text('durable').notNullable();
    t.bigInteger('first_at').notNullable();
    t.bigInteger('last_at').notNullable();
    t.bigInteger('seen').notNullable();
    t.integer('epoch').notNullable();
    t.primary(['kid', 'durable']);
  });
  await knex.schema.createTable('visitor_index', (t) => {
    t.text('kid').notNullable();
    t.text('visitor_id').notNullable();
    t.text('durable').notNullable();
    t.integer('epoch').notNullable();
    t.primary(['kid', 'visitor_id']);
    t.index(['kid', 'durable']);
  });
  await knex.schema.createTable('overrides', (t) => {
    t.text('kid').notNullable();
    t.text('durable').notNullable();
    t.bigInteger('created_at').notNullable();
    t.primary(['kid', 'durable']);
  });
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
