/** @typedef {import('knex').Knex} Knex */

/**
 * A nonce is forgotten by the time that its bundle carries. A row that is there already has a later time, and stays a little longer.
 * @param {Knex} knex
 */
export async function up(knex) {
  await knex.raw('ALTER TABLE nonces RENAME COLUMN expires_at TO dated_at');
  await knex.raw('DROP INDEX nonces_expires_at');
  await knex.raw('CREATE INDEX nonces_dated_at ON nonces (dated_at)');
  await knex('meta').whereIn('name', ['steady-clock', 'nonces-restored-to']).delete();
  await knex('meta').whereLike('name', 'clock-skew:%').delete();
}
