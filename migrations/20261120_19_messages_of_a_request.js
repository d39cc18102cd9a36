// What webhooks are yet to be told of a request: an erasure and the retention look for it by the request, and must not
// read a week of everybody's messages to find it.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.raw(
    'CREATE INDEX webhook_outbox_request ON webhook_outbox (kid, request_id) WHERE request_id IS NOT NULL',
  );
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.raw('DROP INDEX webhook_outbox_request');
}
