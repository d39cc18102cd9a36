/**
 * Entries of a log that no commitment binds to a person carry a MAC under a key of the tenant: a writer of the database without that
 * key cannot append one. No migration has the key: an entry without a MAC counts as forged.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('ledger_entries', (t) => {
    t.text('mac').nullable();
  });
}
