import type { Knex } from 'knex';
import { writeActForAll } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { writeMeta } from '../db/meta-store.ts';
import { bumpTenant } from '../db/revision.ts';
import {
  archiveSignerContext,
  openUnder,
  SERVER_SECRET,
  serverSecretContext,
  tenantSecretContexts,
  webhookSecretContext,
} from '../keys/contexts.ts';
import { wrapContext } from '../keys/generation.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import { readArchiveSigner, rewrapArchiveSigner } from '../rights/dsar/archive-signer-store.ts';

/** Everything that the master key wraps, wrapped again in one transaction. */

/** Where secrets of tenants stand: by kid and `part`, each wrapped under one of `contexts`. */
const PLACES = [
  {
    table: 'tenant_secrets',
    part: 'purpose',
    column: 'wrapped',
    nameOf: (purpose: string) => purpose,
    contexts: tenantSecretContexts,
  },
  {
    table: 'seal_keys',
    part: 'generation',
    column: 'wrapped_private',
    nameOf: (generation: string) => `seal key ${generation}`,
    contexts: (kid: string, generation: string) => [wrapContext(kid, Number(generation))],
  },
  {
    table: 'webhooks',
    part: 'id',
    column: 'wrapped_secret',
    nameOf: (id: string) => `webhook ${id}`,
    contexts: (kid: string, id: string) => [webhookSecretContext(kid, id)],
  },
] as const;

export async function allWrapped(db: Knex) {
  const all = await Promise.all(
    PLACES.map(async ({ table, part, column, nameOf, contexts }) => {
      type Row = { kid: string; part: string; wrapped: string };
      const rows = (await db(table).whereNotNull(column).select('kid', { part, wrapped: column })) as Row[];
      return rows.map(({ kid, part: value, wrapped }) => ({
        name: `${nameOf(value)} of ${kid}`,
        table,
        key: { kid, [part]: value },
        column,
        wrapped,
        contexts: contexts(kid, value),
      }));
    }),
  );
  return all.flat();
}

/** With the archive's signer and the server's own secret. */
function countsOf(all: Awaited<ReturnType<typeof allWrapped>>, signers: number) {
  const sealKeys = all.filter(({ table }) => table === 'seal_keys').length;
  return { secrets: all.length - sealKeys + signers + 1, sealKeys };
}

export function rewrapAll(
  database: Database,
  from: MasterKey,
  to: MasterKey,
  serverSecret: Uint8Array,
  by: InstallationAct,
): Promise<ReturnType<typeof countsOf>> {
  return database.transaction(async (tx) => {
    const kids = await tx('tenants').select<{ kid: string }[]>('kid').orderBy('kid');
    for (const { kid } of kids) await bumpTenant(tx, kid);
    const all = await allWrapped(tx);
    for (const { table, key, column, wrapped, contexts } of all) {
      const { secret, context } = openUnder(from, wrapped, contexts);
      await tx(table)
        .where(key)
        .update({ [column]: to.wrap(secret, context) });
    }
    const signers = await rewrapArchiveSigner(tx, (wrapped) =>
      to.wrap(from.unwrap(wrapped, archiveSignerContext), archiveSignerContext),
    );
    await writeMeta(tx, SERVER_SECRET, to.wrap(serverSecret, serverSecretContext));
    await writeActForAll(tx, by, 'key.rotated', { key: 'master' });
    return countsOf(all, signers);
  });
}

/** How many there are, for `--dry-run`. */
export async function countWrapped(database: Database) {
  const signers = (await readArchiveSigner(database)) === null ? 0 : 1;
  return countsOf(await allWrapped(database.read), signers);
}
