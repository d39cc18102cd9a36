/** @typedef {import('knex').Knex} Knex */

/**
 * Counters of rate limits are worth nothing a minute later: after a crash of PostgreSQL they begin at zero, and meanwhile counting
 * waits neither for its disk nor for a standby. Locks the table for as long as it takes to copy its rows: those of two windows.
 * @param {Knex} knex
 */
export async function up(knex) {
  if (knex.client.dialect !== 'sqlite3') await knex.raw('ALTER TABLE rate_counters SET UNLOGGED');
}
