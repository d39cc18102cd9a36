// The console: sessions of staff, drafts that an expired session left, tallies for the overview, traffic by key generation.

/** @param {import('knex').Knex} knex */
async function createSessions(knex) {
  await knex.schema.createTable('console_sessions', (t) => {
    // SHA-256 of the cookie's value.
    t.text('hash').primary();
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    // Keyed reference of the person; the label is what colleagues are told.
    t.text('actor').notNullable();
    t.text('label').notNullable();
    t.text('roles').notNullable();
    t.text('csrf').notNullable();
    t.bigInteger('created_at').notNullable();
    t.bigInteger('seen_at').notNullable();
    t.bigInteger('expires_at').notNullable().index();
    t.index(['kid', 'seen_at']);
  });
  await knex.schema.createTable('console_drafts', (t) => {
    t.text('kid').notNullable();
    t.text('actor').notNullable();
    // Goes with its contest: an erasure takes it along.
    t.text('contest_id')
      .notNullable()
      .references('contest_id')
      .inTable('contests')
      .onDelete('CASCADE')
      .index();
    t.text('kind').notNullable();
    t.text('outcome').nullable();
    t.text('text').notNullable();
    t.bigInteger('at').notNullable().index();
    t.primary(['kid', 'actor', 'contest_id', 'kind']);
  });
}

/** @param {import('knex').Knex} knex */
async function createTallies(knex) {
  // Counts by hour, so that a page about a million verdicts reads a few hundred rows.
  await knex.schema.createTable('tallies', (t) => {
    t.text('kid').notNullable();
    t.text('kind').notNullable();
    t.bigInteger('hour').notNullable();
    t.text('name').notNullable();
    t.bigInteger('n').notNullable();
    t.primary(['kid', 'kind', 'hour', 'name']);
  });
  // How far each kind is counted: a moment for verdicts, a place in the log for consent.
  await knex.schema.createTable('tally_marks', (t) => {
    t.text('kid').notNullable();
    t.text('kind').notNullable();
    t.bigInteger('upto').notNullable();
    t.primary(['kid', 'kind']);
  });
  // Outcomes of reviews by the rules that had fired.
  await knex.schema.createTable('rule_reviews', (t) => {
    t.text('kid').notNullable();
    t.text('rule').notNullable();
    t.bigInteger('upheld').notNullable();
    t.bigInteger('overturned').notNullable();
    t.primary(['kid', 'rule']);
  });
  await knex.schema.createTable('key_traffic', (t) => {
    t.text('kid').notNullable();
    t.integer('generation').notNullable();
    t.bigInteger('day').notNullable();
    t.bigInteger('bundles').notNullable();
    t.bigInteger('last_at').notNullable();
    t.primary(['kid', 'generation', 'day']);
  });
}

/** @param {import('knex').Knex} knex */
async function createIndexes(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.index(['kid', 'status', 'class', 'due_at', 'contest_id']);
    t.index(['kid', 'status', 'resolved_at', 'contest_id']);
    t.index(['kid', 'status', 'claimed_until']);
  });
  await knex.schema.alterTable('audit_log', (t) => {
    t.index(['kid', 'seq']);
    t.index(['kid', 'action', 'seq']);
    t.index(['kid', 'actor', 'seq']);
  });
}

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await createSessions(knex);
  await createTallies(knex);
  await createIndexes(knex);
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('audit_log', (t) => {
    t.dropIndex(['kid', 'seq']);
    t.dropIndex(['kid', 'action', 'seq']);
    t.dropIndex(['kid', 'actor', 'seq']);
  });
  await knex.schema.alterTable('contests', (t) => {
    t.dropIndex(['kid', 'status', 'class', 'due_at', 'contest_id']);
    t.dropIndex(['kid', 'status', 'resolved_at', 'contest_id']);
    t.dropIndex(['kid', 'status', 'claimed_until']);
  });
  const tables = [
    'key_traffic',
    'rule_reviews',
    'tally_marks',
    'tallies',
    'console_drafts',
    'console_sessions',
  ];
  for (const table of tables) await knex.schema.dropTable(table);
}
