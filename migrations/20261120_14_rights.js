// Rights: contests, links of principals, the audit log and its seals, erasure receipts, legal holds, signal summaries.

/** @param {import('knex').Knex} knex */
async function createContests(knex) {
  await knex.schema.createTable('contests', (t) => {
    t.text('kid').notNullable();
    t.text('contest_id').notNullable();
    t.text('request_id').notNullable();
    t.text('durable').nullable();
    t.text('filed_by').notNullable();
    t.text('statement').nullable();
    t.bigInteger('filed_at').notNullable();
    t.bigInteger('due_at').notNullable();
    t.text('status').notNullable();
    t.integer('version').notNullable();
    // The class that is contested, so that the queue filters without opening verdicts.
    t.text('class').notNullable();
    t.text('outcome').nullable();
    t.text('reason').nullable();
    t.bigInteger('resolved_at').nullable();
    t.text('resolved_role').nullable();
    t.text('resolved_by').nullable();
    t.text('claimed_by').nullable();
    t.text('claimed_label').nullable();
    t.bigInteger('claimed_until').nullable();
    // review.fourEyes: what one reviewer proposed and another has to confirm.
    t.text('proposed_outcome').nullable();
    t.text('proposed_reason').nullable();
    t.text('proposed_by').nullable();
    t.bigInteger('proposed_at').nullable();
    t.text('question').nullable();
    t.bigInteger('asked_at').nullable();
    t.primary(['contest_id']);
    t.unique(['kid', 'request_id']);
    t.index(['kid', 'status', 'due_at', 'contest_id']);
    t.index(['kid', 'durable']);
  });
}

/** @param {import('knex').Knex} knex */
async function createAudit(knex) {
  // Keyed references only: nothing here names a person once the tenant's key or the subject is gone.
  await knex.schema.createTable('audit_log', (t) => {
    t.bigIncrements('seq');
    t.text('kid').notNullable();
    t.bigInteger('at').notNullable();
    t.text('role').notNullable();
    t.text('actor').notNullable();
    t.text('action').notNullable();
    t.text('object').nullable();
    t.text('detail').notNullable();
    t.text('salt').notNullable();
    t.text('commitment').notNullable();
    t.index(['kid', 'at']);
    t.index(['kid', 'object']);
  });
  await knex.schema.createTable('audit_seals', (t) => {
    t.text('kid').notNullable();
    t.bigInteger('hour').notNullable();
    t.bigInteger('seq').notNullable();
    t.integer('count').notNullable();
    t.text('root').notNullable();
    t.primary(['kid', 'hour']);
  });
}

const HOUR = 3_600_000;

/**
 * The places of erased verdicts among all of their hour, in the order in which it was sealed: without them the seal of that
 * hour would not hold any more. Only sealed hours need one.
 * @param {import('knex').Knex} knex
 * @returns {Promise<{ kid: string, hour: number, position: number, commitment: string }[]>}
 */
async function placesOfErased(knex) {
  /** @param {string} table @param {number} erased */
  const rows = (table, erased) =>
    knex(table).select(
      'kid',
      'request_id',
      'commitment',
      knex.raw(`decided_at / ${HOUR} * ${HOUR} AS hour, ${erased} AS erased`),
    );
  const all = rows('decisions', 0)
    .unionAll([rows('erased_verdicts', 1)])
    .as('verdicts');
  const ranked = knex(all)
    .select(
      'kid',
      'hour',
      'commitment',
      'erased',
      knex.raw('ROW_NUMBER() OVER (PARTITION BY kid, hour ORDER BY request_id) - 1 AS position'),
    )
    .as('ranked');
  const sealed = knex('verdict_seals').select('kid', 'hour');
  const places = await knex(ranked)
    .where({ erased: 1 })
    .whereIn(['kid', 'hour'], sealed)
    .select('kid', 'hour', 'position', 'commitment');
  return places.map((place) => ({ ...place, hour: Number(place.hour), position: Number(place.position) }));
}

/** @param {import('knex').Knex} knex */
async function createErasures(knex) {
  await knex.schema.createTable('erasures', (t) => {
    t.text('receipt_id').primary();
    t.text('kid').notNullable();
    t.text('subject').notNullable();
    t.text('requested_by').notNullable();
    t.bigInteger('erased_at').notNullable();
    t.text('scopes').notNullable();
    // Keyed references for the tombstone outside the database, and what the erasure keeps.
    t.text('refs').notNullable();
    // rows: deleted, still in the write-ahead log; logged: the tombstone is on disk; done.
    t.text('step').notNullable();
    t.index(['kid', 'erased_at']);
    t.index(['step']);
  });
  await knex.schema.createTable('legal_holds', (t) => {
    t.text('kid').notNullable();
    t.text('durable').notNullable();
    t.text('scope').notNullable();
    t.text('basis').notNullable();
    t.bigInteger('created_at').notNullable();
    // An erasure met this hold and runs when it is released.
    t.text('requested_by').nullable();
    t.primary(['kid', 'durable', 'scope']);
  });
  // An erased verdict of a sealed hour leaves its commitment at its place, and no id.
  const places = await placesOfErased(knex);
  await knex.schema.dropTable('erased_verdicts');
  await knex.schema.createTable('erased_verdicts', (t) => {
    t.text('kid').notNullable();
    t.bigInteger('hour').notNullable();
    t.integer('position').notNullable();
    t.text('commitment').notNullable();
    t.primary(['kid', 'hour', 'position']);
  });
  await knex.batchInsert('erased_verdicts', places, 200);
}

/** @param {import('knex').Knex} knex */
async function createTransparency(knex) {
  await knex.schema.createTable('signal_summaries', (t) => {
    t.text('kid').notNullable();
    t.text('request_id').notNullable();
    t.bigInteger('expires_at').notNullable().index();
    t.text('summary').notNullable();
    t.primary(['kid', 'request_id']);
  });
  // How many devices had a value, by keyed hash of it.
  await knex.schema.createTable('population', (t) => {
    t.text('kid').notNullable();
    t.text('signal').notNullable();
    t.text('value').notNullable();
    t.bigInteger('devices').notNullable();
    t.primary(['kid', 'signal', 'value']);
  });
}

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await createContests(knex);
  await createAudit(knex);
  await createErasures(knex);
  await createTransparency(knex);
  await knex.schema.createTable('links', (t) => {
    t.text('kid').notNullable();
    t.text('request_id').notNullable();
    t.text('principal').notNullable();
    t.bigInteger('linked_at').notNullable();
    t.primary(['kid', 'request_id']);
    t.index(['kid', 'principal']);
  });
  await knex.schema.alterTable('overrides', (t) => {
    t.text('request_id').nullable();
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('overrides', (t) => {
    t.dropColumn('request_id');
  });
  await knex.schema.dropTable('erased_verdicts');
  await knex.schema.createTable('erased_verdicts', (t) => {
    t.text('kid').notNullable();
    t.text('request_id').notNullable();
    t.bigInteger('decided_at').notNullable();
    t.text('commitment').notNullable();
    t.primary(['kid', 'request_id']);
    t.index(['kid', 'decided_at']);
  });
  const tables = [
    'links',
    'population',
    'signal_summaries',
    'legal_holds',
    'erasures',
    'audit_seals',
    'audit_log',
    'contests',
  ];
  for (const table of tables) await knex.schema.dropTable(table);
}
