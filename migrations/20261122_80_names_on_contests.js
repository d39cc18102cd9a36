// How whoever resolved or proposed is called in the console, beside the keyed reference: as a claim has it. Older rows have none, and
// the console says the role.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.text('resolved_label').nullable();
    t.text('proposed_label').nullable();
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('contests', (t) => {
    t.dropColumn('resolved_label');
    t.dropColumn('proposed_label');
  });
}
