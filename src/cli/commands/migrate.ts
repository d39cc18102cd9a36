import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { sqliteFile } from '../../config.ts';
import type { Database } from '../../db/engine.ts';
import { refuseForeignObjects } from '../../db/foreign-objects.ts';
import { pendingMigrations } from '../../db/migrate.ts';
import { withClosing } from '../../lib/collections.ts';
import { TABLES } from '../../rights/person-map.ts';
import { migrateData, notInitialised, openData } from '../../tenants/installation-files.ts';
import { type CommandContext, command, example } from '../command-service.ts';
import { print } from '../io-service.ts';

export function define(migrate: Command): void {
  migrate
    .option('--dry-run', 'show what would be applied; change nothing')
    .addHelpText('after', example('gpd migrate --dry-run'))
    .action(command(migrateSchema));
}

async function migrateSchema({ config }: CommandContext, options: { readonly dryRun?: boolean }) {
  if (config.database_url === null && !existsSync(sqliteFile(config))) throw notInitialised(config);
  const dryRun = options.dryRun === true;
  const apply = async (database: Database) => {
    const names = await (dryRun ? pendingMigrations(database) : migrateData(config, database));
    await refuseForeignObjects(database, TABLES);
    return names;
  };
  const applied = await withClosing<Database, readonly string[]>(openData(config), apply);
  print({ applied, dryRun }, () =>
    applied.length === 0
      ? ['the schema is up to date']
      : applied.map((name) => `${dryRun ? 'would apply' : 'applied'} ${name}`),
  );
}
