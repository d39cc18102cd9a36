import { createTenant } from '../../ops/new-tenant-service.ts';
import { initialiseStore } from '../../tenants/installation-files.ts';
import { type Actions, MANY, REQUIRED } from '../define.ts';
import { print } from '../output.ts';
import { checkKid, configFor } from '../run.ts';
import { checkOrigins } from './tenants.ts';

async function init(options: { readonly tenant: string; readonly origin: string[] }): Promise<void> {
  const kid = checkKid(options.tenant);
  const origins = checkOrigins(options.origin);
  const config = configFor();
  const store = await initialiseStore(config);
  try {
    const key = await createTenant(store, config, { kid, origins, now: Date.now() });
    const dataDir = config.data_dir;
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
