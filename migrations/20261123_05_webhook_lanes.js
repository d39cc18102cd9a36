// Each webhook has a lane of its own: what is due is looked for by webhook, and only among what waits.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.raw(
    "CREATE INDEX webhook_outbox_lane ON webhook_outbox (kid, webhook, next_at, seq) WHERE state = 'waiting'",
  );
  await knex.raw(
    "CREATE INDEX webhook_outbox_failed ON webhook_outbox (kid, webhook) WHERE state = 'failed'",
  );
  await knex.raw('DROP INDEX webhook_outbox_state_next_at_index');
}
