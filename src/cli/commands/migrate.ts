import { existsSync } from 'node:fs';
import { sqliteFile } from '../../config.ts';
import type { Database } from '../../db/db.ts';
import { pendingMigrations } from '../../db/migrate.ts';
import { withClosing } from '../../lib/functions.ts';
import { migrateData, openData } from '../../tenants/data-lock-files.ts';
import { notInitialised } from '../../tenants/installation-files.ts';
import type { Actions } from '../define.ts';
import { print } from '../output.ts';
import { configFor } from '../run.ts';

async function migrateCommand(options: { readonly dryRun?: boolean }): Promise<void> {
  const config = configFor();
  if (config.database_url === null && !existsSync(sqliteFile(config))) throw notInitialised(config);
  const dryRun = options.dryRun === true;
  const apply = (database: Database) =>
    dryRun ? pendingMigrations(database) : migrateData(config, database);
  const applied = await withClosing<Database, readonly string[]>(openData(config), apply);
  print({ applied, dryRun }, () =>
    applied.length === 0
      ? ['the schema is up to date']
      : applied.map((name) => `${dryRun ? 'would apply' : 'applied'} ${name}`),
  );
}

export const ACTIONS: Actions = { '': migrateCommand };
