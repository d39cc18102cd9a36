// When the epoch of a visitorId ends: its number says so only as long as GPD_EPOCH_DAYS stays what it was. Null in rows that an
// older release wrote; the server fills them in at its start, as a migration knows no setting.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('visitor_index', (t) => {
    t.bigInteger('ends_at').nullable();
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('visitor_index', (t) => {
    t.dropColumn('ends_at');
  });
}
