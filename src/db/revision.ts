import type { Knex } from 'knex';
import type { Database } from './db.ts';
import { cellOf } from './sql.ts';
import { GOING } from './tenant-hold.ts';

/** What has its own revision counter. */
export type Revisioned = 'tenants' | 'agents';

/** Takes the next revision; the row lock orders concurrent writers, so that a poll never skips one. */
export async function bump(tx: Knex.Transaction, scope: Revisioned): Promise<number> {
  await tx('revisions').where({ scope }).increment('revision', 1);
  const row = await tx('revisions').where({ scope }).first<{ revision: number }>('revision');
  if (!row) throw new Error(`the table revisions has lost its row \`${scope}\``);
  return row.revision;
}

export async function readRevision(database: Database, scope: Revisioned): Promise<number> {
  return (await cellOf<number>(database.read('revisions').where({ scope }), 'revision')) ?? 0;
}

/**
 * Marks a tenant as changed and takes its row lock, before anything of it is read that the change depends on.
 * @returns whether there is such a tenant; false too for one whose removal has begun, which no change may revive
 */
export async function bumpTenant(tx: Knex.Transaction, kid: string): Promise<boolean> {
  const revision = await bump(tx, 'tenants');
  return (await tx('tenants').where({ kid }).where('revision', '>', GOING).update({ revision })) === 1;
}
