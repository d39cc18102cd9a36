import type { Database } from '../db/db.ts';
import { LEDGER_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { readLogSecret, wrapLogSecret } from './new-log.ts';

/** Says in the wrapped seed of a log of an earlier release that its checkpoints are in checkpoints.log from now on. */
export async function markCheckpointed(database: Database, masterKey: MasterKey, kid: string): Promise<void> {
  const about = { kid, purpose: LEDGER_SECRET };
  await database.transaction(async (tx) => {
    const row = await tx('tenant_secrets').where(about).first<{ wrapped: string } | undefined>('wrapped');
    if (!row) return;
    const secret = masterKey.unwrap(row.wrapped, tenantSecretContext(kid, LEDGER_SECRET));
    const { seed, checkpointed } = readLogSecret(secret);
    if (checkpointed) return;
    const wrapped = wrapLogSecret(masterKey, kid, seed);
    await tx('tenant_secrets')
      .where({ ...about, wrapped: row.wrapped })
      .update({ wrapped });
  });
}
