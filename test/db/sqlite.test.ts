import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { type Database, openDatabase } from '../../src/db/db.ts';
import { migrate } from '../../src/db/migrate.ts';
import type { MakeDatabase } from './contract/database.ts';
import { storageContract } from './contract/storage.ts';

const make: MakeDatabase = async (schema = 'present') => {
  const directory = await mkdtemp(join(tmpdir(), 'gpd-test-sqlite-'));
  const location = join(directory, 'gpd.db');
  const database = await openDatabase({ location, create: true });
  const open: Database[] = [database];
  if (schema === 'present') await migrate(database);
  return {
    database,
    async connect() {
      const node = await openDatabase({ location, create: true });
      open.push(node);
      return node;
    },
    async close() {
      for (const node of open) await node.close();
      await rm(directory, { recursive: true });
    },
  };
};

describe('storage on SQLite', () => {
  storageContract(make);
});
