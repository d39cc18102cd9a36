/** @typedef {import('knex').Knex} Knex */

/**
 * What a check is answered from carries a MAC under the tenant's key (ADR 0042). Null only until the first start of this version
 * has computed it: no migration has the key.
 * @param {Knex} knex
 */
export async function up(knex) {
  for (const table of ['consent_state', 'consent_principals']) {
    await knex.schema.alterTable(table, (t) => {
      t.text('mac').nullable();
    });
  }
  // Of the purposes and the policy versions together, so that a row that was removed is missed.
  await knex.schema.alterTable('tenants', (t) => {
    t.text('terms_mac').nullable();
  });
}
