import type { Knex } from 'knex';
import { writeActForAll } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { bumpTenant, writeMeta } from '../db/meta-store.ts';
import { wrapContext } from '../keys/generation.ts';
import {
  archiveSignerContext,
  type MasterKey,
  SERVER_SECRET,
  serverSecretContext,
  tenantSecretContext,
  webhookSecretContext,
} from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import { readArchiveSigner, rewrapArchiveSigner } from '../rights/dsar/signer-store.ts';

/** Reads and rewrites all secrets that the master key wraps. */

/** Columns with wrapped secrets. `part` is the second column of the table's key, after kid. */
const PLACES = [
  {
    table: 'tenant_secrets',
    part: 'purpose',
    column: 'wrapped',
    nameOf: (purpose: string) => purpose,
    contextOf: tenantSecretContext,
  },
  {
    table: 'seal_keys',
    part: 'generation',
    column: 'wrapped_private',
    nameOf: (generation: string) => `seal key ${generation}`,
    contextOf: (kid: string, generation: string) => wrapContext(kid, Number(generation)),
  },
  {
    table: 'webhooks',
    part: 'id',
    column: 'wrapped_secret',
    nameOf: (id: string) => `webhook ${id}`,
    contextOf: webhookSecretContext,
  },
] as const;

export async function listWrapped(db: Knex) {
  const all = await Promise.all(
    PLACES.map(async ({ table, part, column, nameOf, contextOf }) => {
      type Row = { kid: string; part: string; wrapped: string };
      const rows = (await db(table).whereNotNull(column).select('kid', { part, wrapped: column })) as Row[];
      return rows.map(({ kid, part: value, wrapped }) => ({
        name: `${nameOf(value)} of ${kid}`,
        table,
        key: { kid, [part]: value },
        column,
        wrapped,
        context: contextOf(kid, value),
      }));
    }),
  );
  return all.flat();
}

/** Counts secrets and seal keys; the archive's signer and the server secret are secrets too. */
function countKinds(all: Awaited<ReturnType<typeof listWrapped>>, signers: number) {
  const sealKeys = all.filter(({ table }) => table === 'seal_keys').length;
  return { secrets: all.length - sealKeys + signers + 1, sealKeys };
}

export function rewrapAll(
  database: Database,
  from: MasterKey,
  to: MasterKey,
  serverSecret: Uint8Array,
  by: InstallationAct,
): Promise<ReturnType<typeof countKinds>> {
  return database.transaction(async (tx) => {
    const kids = await tx('tenants').select<{ kid: string }[]>('kid').orderBy('kid');
    for (const { kid } of kids) await bumpTenant(tx, kid);
    const all = await listWrapped(tx);
    for (const { table, key, column, wrapped, context } of all)
      await tx(table)
        .where(key)
        .update({ [column]: to.wrap(from.unwrap(wrapped, context), context) });
    const signers = await rewrapArchiveSigner(tx, (wrapped) =>
      to.wrap(from.unwrap(wrapped, archiveSignerContext), archiveSignerContext),
    );
    await writeMeta(tx, SERVER_SECRET, to.wrap(serverSecret, serverSecretContext));
    await writeActForAll(tx, by, 'key.rotated', { key: 'master' });
    return countKinds(all, signers);
  });
}

/** Counts the secrets for --dry-run. */
export async function countWrapped(database: Database) {
  const signers = (await readArchiveSigner(database)) === null ? 0 : 1;
  return countKinds(await listWrapped(database.read), signers);
}
