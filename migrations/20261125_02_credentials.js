/**
 * Passkeys that tell a device apart from those that look the same (contract-2 section 16): the credential's id is kept as the keyed
 * hash that is the device's durable id, beside its public key, its counter and when it was used.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  await knex.schema.createTable('credentials', (t) => {
    for (const name of ['kid', 'durable', 'public_key']) t.text(name).notNullable();
    t.bigInteger('counter').notNullable();
    t.boolean('device_bound').notNullable();
    for (const name of ['created_at', 'last_at']) t.bigInteger(name).notNullable();
    t.primary(['kid', 'durable']);
  });
}
