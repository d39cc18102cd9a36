// Requests whose rows a large erasure deletes in steps. A row hides its request once its receipt is in `erasures`; until then
// it is only staged. `held`: the scopes that legal holds on the device kept when the request was marked.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  const sqlite = knex.client.dialect === 'sqlite3';
  await knex.raw(
    `CREATE TABLE erasing (receipt_id text NOT NULL, kid text NOT NULL, request_id text NOT NULL, durable text,
      held text, staged_at bigint NOT NULL, PRIMARY KEY (receipt_id, request_id))${sqlite ? ' WITHOUT ROWID' : ''}`,
  );
  await knex.raw('CREATE INDEX erasing_request ON erasing (kid, request_id)');
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('erasing');
}
