// Up to where the hours of a tenant's verdicts and audit rows are sealed. The seals themselves are deleted by retention.

const HOUR = 3_600_000;
const MARKS = { verdict_seals: 'verdicts_sealed_to', audit_seals: 'audit_sealed_to' };

/** @param {import('knex').Knex} knex */
export async function up(knex) {
  await knex.schema.alterTable('ledger_heads', (t) => {
    for (const mark of Object.values(MARKS)) t.bigInteger(mark).notNullable().defaultTo(0);
  });
  for (const [seals, mark] of Object.entries(MARKS)) {
    const end = knex(seals).whereRaw('??.kid = ledger_heads.kid', [seals]).max('hour');
    await knex('ledger_heads').update({ [mark]: knex.raw(`COALESCE((?) + ${HOUR}, 0)`, [end]) });
  }
}

/** @param {import('knex').Knex} knex */
export async function down(knex) {
  await knex.schema.alterTable('ledger_heads', (t) => {
    for (const mark of Object.values(MARKS)) t.dropColumn(mark);
  });
}
