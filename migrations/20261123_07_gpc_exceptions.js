/** @typedef {import('knex').Knex} Knex */

/**
 * Purposes that a grant with `gpc: false` took out of the Global Privacy Control opt-out (contract-2 section 13): their ids as
 * JSON, null for none. `gpc` stays: the opt-out holds for every other purpose whose policy is `opt-out`.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.schema.alterTable('consent_principals', (t) => {
    t.text('gpc_except').nullable();
  });
}
