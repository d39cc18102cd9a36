/** @typedef {import('knex').Knex} Knex */

/** Rows that are updated or deleted all the time; by default autovacuum waits until a fifth of a table is dead. */
const BUSY = ['webhook_outbox', 'nonces', 'network_marks', 'rate_counters'];
/** Few rows that many requests update: room for the next version on the same page. */
const HOT = ['ledger_heads', 'network_totals', 'rate_counters'];

/** @param {Knex} knex */
export async function up(knex) {
  if (knex.client.dialect === 'sqlite3') return;
  for (const table of BUSY) {
    const often = 'autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1';
    await knex.raw(`ALTER TABLE ?? SET (${often})`, [table]);
  }
  for (const table of HOT) await knex.raw('ALTER TABLE ?? SET (fillfactor = 50)', [table]);
}
