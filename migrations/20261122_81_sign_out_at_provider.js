// The ID token of a session, sealed: the hint by which the identity provider signs the person out (RP-Initiated Logout 1.0 section 2).

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('console_sessions', (t) => {
    t.text('id_token').nullable();
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('console_sessions', (t) => {
    t.dropColumn('id_token');
  });
}
