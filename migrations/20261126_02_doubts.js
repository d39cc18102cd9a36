/** @typedef {import('knex').Knex} Knex */

/**
 * Who gave a grant, as the verdict says that rode on it (contract-2 section 18), and the entry `consent.doubted` that says so. Its
 * MAC covers both; null for every other event. An opening of that entry keeps the principal's id, encrypted under the tenant's key:
 * the entry that clears the doubt commits to it, too.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('consent_state', (t) => {
    t.text('given').nullable();
    t.bigInteger('doubt_seq').nullable();
  });
  await knex.schema.alterTable('consent_openings', (t) => {
    t.text('principal_id').nullable();
  });
  // Few rows of many: for the tile and the filter of the console, and for a ruling.
  await knex.raw(
    'CREATE INDEX consent_state_doubted ON consent_state (kid, seq) WHERE doubt_seq IS NOT NULL',
  );
  await knex.raw(
    "CREATE INDEX consent_openings_doubted ON consent_openings (kid, seq) WHERE choice = 'doubted'",
  );
}
