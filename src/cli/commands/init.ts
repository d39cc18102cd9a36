import type { Command } from 'commander';
import { initialiseStore } from '../../tenants/installation-files.ts';
import { print } from '../output.ts';
import { checkKid, configFor } from '../run.ts';
import { checkOrigins, collect, makeTenant } from './tenants.ts';

interface InitOptions {
  readonly tenant: string;
  readonly origin: string[];
}

export function registerInit(program: Command): void {
  program
    .command('init')
    .description('make the data directory, the master key, the database and the first tenant')
    .requiredOption('--tenant <kid>', 'the first tenant')
    .option('--origin <url>', 'an origin of its pages; repeat it for more', collect, [])
    .action(async (options: InitOptions) => {
      const kid = checkKid(options.tenant);
      const origins = checkOrigins(options.origin);
      const config = configFor();
      const store = await initialiseStore(config);
      try {
        const key = await makeTenant(store, config, kid, origins);
        const dataDir = config.data_dir;
        const made = { kid, origins, dataDir, generation: key?.generation, publicKey: key?.publicKey };
        print(made, () => [
          `data directory  ${dataDir}`,
          `tenant          ${kid}`,
          `seal key        generation ${key?.generation}, published`,
          'Keep the master key on paper, away from this machine: gpd master-key escrow. Without it nothing opens again.',
          'Next: gpd serve',
        ]);
      } finally {
        await store.database.close();
      }
    });
}
