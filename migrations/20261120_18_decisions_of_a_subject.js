// A subject's decisions, newest first, as one range of one index: an export must neither sort them for each page nor
// read those of everybody else.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('decisions', (t) => {
    t.index(['kid', 'durable', 'request_id']);
    t.dropIndex(['kid', 'durable']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('decisions', (t) => {
    t.index(['kid', 'durable']);
    t.dropIndex(['kid', 'durable', 'request_id']);
  });
}
