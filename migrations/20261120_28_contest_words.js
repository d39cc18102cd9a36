// What people wrote about a contest, sealed under the tenant's key. Words that older rows hold in the clear stay readable, and are
// sealed by the next change of the row or by the server's hourly round: a migration has no keys.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.text('sealed').nullable();
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.dropColumn('sealed');
  });
}
