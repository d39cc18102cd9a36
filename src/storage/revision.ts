import type { Knex } from 'knex';

/** Takes the next revision; the row lock orders concurrent writers, so that a poll never skips one. */
export async function nextRevision(tx: Knex.Transaction): Promise<number> {
  await tx('revisions').where({ scope: 'tenants' }).increment('revision', 1);
  const row = await tx('revisions').where({ scope: 'tenants' }).first<{ revision: number }>('revision');
  if (!row) throw new Error('the table revisions has lost its row `tenants`');
  return row.revision;
}

/**
 * Marks a tenant as changed and takes its row lock, before anything of it is read that the change depends on.
 * @returns whether there is such a tenant
 */
export async function bumpTenant(tx: Knex.Transaction, kid: string): Promise<boolean> {
  const revision = await nextRevision(tx);
  return (await tx('tenants').where({ kid }).update({ revision })) === 1;
}
