import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import { addTenant, type TenantRequest } from '../../ops/new-tenant-service.ts';
import { finishSetup } from '../../ops/setup-service.ts';
import { AlreadyInitialised, initialiseStore } from '../../tenants/installation-files.ts';
import {
  type CommandContext,
  checkKid,
  collect,
  command,
  example,
  startCommand,
} from '../command-service.ts';
import { print, say } from '../io-service.ts';
import { checkOrigins, type NewTenantFlags, warningsOf } from './tenants.ts';

export function define(init: Command): void {
  init
    .requiredOption('--tenant <kid>', 'the first tenant')
    .option('--origin <url>', 'an origin of its pages; repeat it for more', collect, [])
    .option('--controller <text>', 'who is responsible for the data: name and address')
    .option('--contact <text>', 'how people reach them, an e-mail address for instance')
    .addHelpText('after', example('gpd init --tenant shop --origin https://shop.example'))
    .action(command(initialise));
}

/** @throws {AlreadyInitialised} */
async function createInstallation(config: Config, tenant: TenantRequest) {
  const store = await initialiseStore(config);
  try {
    const key = await addTenant(store, config, { ...tenant, now: Date.now() });
    finishSetup(config);
    for (const warning of warningsOf(config, tenant)) say(warning);
    return key;
  } finally {
    await store.database.close();
  }
}

async function initialise({ config }: CommandContext, options: NewTenantFlags & { readonly tenant: string }) {
  const { controller, contact } = options;
  const kid = checkKid(options.tenant);
  const origins = checkOrigins(options.origin);
  const key = await createInstallation(config, { kid, origins, controller, contact });
  const dataDir = config.data_dir;
  const summary = { kid, origins, dataDir, generation: key?.generation, publicKey: key?.publicKey };
  print(summary, () => [
    `data directory  ${dataDir}`,
    `tenant          ${kid}`,
    `seal key        generation ${key?.generation}, published`,
    'Keep the master key on paper, away from this machine: gpd master-key escrow. Without it nothing can be decrypted.',
    `Next: ${startCommand(config)}`,
  ]);
}

/**
 * The first start of a container (GPD_INIT_TENANT). It never touches existing data: a removed tenant stays
 * removed.
 */
export async function initialiseOnce(config: Config): Promise<void> {
  if (config.init_tenant === null) return;
  const tenant = { kid: config.init_tenant, origins: config.init_origin };
  await createInstallation(config, tenant).catch((error: unknown) => {
    if (!(error instanceof AlreadyInitialised)) throw error;
  });
}
