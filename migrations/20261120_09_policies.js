// A tenant's own weights, live or in shadow, and how often the shadow would have decided otherwise.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('tenant_policies', (t) => {
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE');
    t.text('mode').notNullable();
    t.text('policy').notNullable();
    t.bigInteger('created_at').notNullable();
    t.primary(['kid', 'mode']);
  });
  await knex.schema.createTable('shadow_counts', (t) => {
    t.text('kid').notNullable();
    t.integer('day').notNullable();
    t.text('policy_version').notNullable();
    t.text('live_class').notNullable();
    t.text('shadow_class').notNullable();
    t.bigInteger('verdicts').notNullable();
    t.primary(['kid', 'day', 'policy_version', 'live_class', 'shadow_class']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.dropTable('shadow_counts');
  await knex.schema.dropTable('tenant_policies');
}
