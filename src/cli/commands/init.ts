import { createTenant } from '../../ops/new-tenant-service.ts';
import { initialiseStore } from '../../tenants/installation-files.ts';
import { type Actions, MANY, REQUIRED } from '../define.ts';
import { print, say } from '../output.ts';
import { checkKid, configFor } from '../run.ts';
import { checkOrigins, type NewTenantFlags, warningsOf } from './tenants.ts';

async function init(options: NewTenantFlags & { readonly tenant: string }): Promise<void> {
  const { controller, contact } = options;
  const kid = checkKid(options.tenant);
  const origins = checkOrigins(options.origin);
  const tenant = { kid, origins, controller, contact };
  const config = configFor();
  const store = await initialiseStore(config);
  try {
    const key = await createTenant(store, config, { ...tenant, now: Date.now() });
    const dataDir = config.data_dir;
    for (const warning of warningsOf(config, tenant)) say(warning);
    const made = { kid, origins, dataDir, generation: key?.generation, publicKey: key?.publicKey };
    print(made, () => [
      `data directory  ${dataDir}`,
      `tenant          ${kid}`,
      `seal key        generation ${key?.generation}, published`,
      'Keep the master key on paper, away from this machine: gpd master-key escrow. Without it nothing can be decrypted.',
      'Next: gpd serve',
    ]);
  } finally {
    await store.database.close();
  }
}

export const ACTIONS: Actions = { '': [init, { tenant: REQUIRED, origin: MANY }] };
