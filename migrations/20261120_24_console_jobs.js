// The console's jobs in the database: behind a balancer the page that asks again may reach another node.

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.createTable('console_jobs', (t) => {
    // SHA-256 of the id in the address. The id itself is in no table: what an export wrote opens with it alone.
    t.text('hash').primary();
    t.text('kid').notNullable().references('kid').inTable('tenants').onDelete('CASCADE').index();
    t.text('actor').notNullable();
    t.text('kind').notNullable();
    t.text('state').notNullable();
    t.bigInteger('done').notNullable();
    t.bigInteger('total').notNullable();
    t.bigInteger('started_at').notNullable();
    // Of the node that works at it: where that is gone, so is the job. It is kept for a while after the last one.
    t.bigInteger('beat_at').notNullable().index();
    t.text('result').nullable();
  });
  // Whom an export is about: an erasure of one of them takes it along.
  await knex.schema.createTable('console_job_subjects', (t) => {
    t.text('hash').notNullable().references('hash').inTable('console_jobs').onDelete('CASCADE');
    t.text('subject').notNullable();
    t.primary(['hash', 'subject']);
  });
  await knex.schema.createTable('console_job_parts', (t) => {
    t.text('hash').notNullable().references('hash').inTable('console_jobs').onDelete('CASCADE');
    t.integer('part').notNullable();
    t.binary('sealed').notNullable();
    t.primary(['hash', 'part']);
  });
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  for (const table of ['console_job_parts', 'console_job_subjects', 'console_jobs'])
    await knex.schema.dropTable(table);
}
