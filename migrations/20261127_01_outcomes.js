/**
 * What became of a decision, as the tenant's backend reported it (contract-2 section 18), and how often that confirmed or
 * contradicted each rule. Not columns of `decisions`: a report must not leave an older copy of the verdict behind on PostgreSQL.
 * @param {import('knex').Knex} knex
 */
export async function up(knex) {
  await knex.schema.createTable('decision_outcomes', (t) => {
    for (const name of ['kid', 'request_id', 'outcome']) t.text(name).notNullable();
    t.bigInteger('at').notNullable();
    t.primary(['kid', 'request_id']);
    t.foreign(['kid', 'request_id'])
      .references(['kid', 'request_id'])
      .inTable('decisions')
      .onDelete('CASCADE');
  });
  await knex.schema.alterTable('rule_reviews', (t) => {
    for (const name of ['confirmed', 'mistaken']) t.bigInteger(name).notNullable().defaultTo(0);
  });
  // PostgreSQL samples no value of it for its planner (20261126_05_no_statistics).
  if (knex.client.dialect !== 'sqlite3')
    await knex.raw('ALTER TABLE decision_outcomes ALTER COLUMN request_id SET STATISTICS 0');
}
