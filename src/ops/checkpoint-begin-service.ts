import type { MasterKey } from '../keys/master-key.ts';
import { type CheckpointDeps, currentCheckpoint } from '../log/checkpoint-service.ts';
import { markCheckpointed } from '../log/log-secret-store.ts';
import { cutoffsOf, sayRetainedBefore } from '../rights/retention/store.ts';
import { makeTenantStore } from '../tenants/tenant-store.ts';

/**
 * A log of a release that kept no checkpoints.log begins one before the server listens: its head is signed and kept, and it says
 * what retention had taken until then. From there on a missing line is a missing line.
 */
export async function beginCheckpoints(
  deps: CheckpointDeps,
  masterKey: MasterKey,
  onFault: (kid: string, error: unknown) => void,
): Promise<void> {
  const { database, keysOf, clock } = deps;
  const tenants = makeTenantStore(database);
  for (const { kid, settings } of await tenants.list()) {
    if (keysOf(kid)?.checkpointed !== false) continue;
    try {
      const rules = { kid, days: settings['retention.days'], now: clock() };
      // Signed first: what does not extend an earlier checkpoint is not written to.
      await currentCheckpoint(deps, kid, 0, 0);
      await sayRetainedBefore(database, kid, rules.now, cutoffsOf(rules).retention);
      await markCheckpointed(database, masterKey, kid);
    } catch (error) {
      onFault(kid, error);
    }
  }
}
