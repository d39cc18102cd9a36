import { copyFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { runDir } from '../../support/command.ts';
import type { SharedPostgres } from '../../support/postgres.ts';
import type { MakeDatabase, TestDatabase } from './database.ts';

/** Databases for a contract, each its own. A migrated one is a copy: that takes a tenth of what the migrations take. */

async function nodesOf(
  open: () => Promise<Database>,
  remove: () => Promise<void> = async () => {},
): Promise<TestDatabase> {
  const database = await open();
  const nodes = [database];
  return {
    database,
    async connect() {
      const node = await open();
      nodes.push(node);
      return node;
    },
    async close() {
      for (const node of nodes) await node.close();
      await remove();
    },
  };
}

async function migrated(location: string): Promise<string> {
  const database = await openDatabase({ location, create: true });
  await migrate(database);
  await database.close();
  return location;
}

export async function onSqlite(): Promise<MakeDatabase> {
  const directory = (): Promise<string> => mkdtemp(join(runDir, 'sqlite-'));
  const template = await migrated(join(await directory(), 'template.db'));
  return async (schema = 'present') => {
    const folder = await directory();
    const location = join(folder, 'gpd.db');
    if (schema === 'present') copyFileSync(template, location);
    return nodesOf(
      () => openDatabase({ location, create: true }),
      () => rm(folder, { recursive: true }),
    );
  };
}

export async function onPostgres(server: Pick<SharedPostgres, 'freshUrl'>): Promise<MakeDatabase> {
  const template = await migrated(await server.freshUrl());
  return async (schema = 'present') => {
    const location = await server.freshUrl(schema === 'present' ? template : undefined);
    return nodesOf(() => openDatabase({ location }));
  };
}
