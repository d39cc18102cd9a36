import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { type Database, openDatabase } from '../../../../src/db/db.ts';
import { migrate } from '../../../../src/db/migrate.ts';
import type { MakeDatabase } from '../../../db/contract/database.ts';
import { consentContract } from './contract.ts';

const make: MakeDatabase = async () => {
  const directory = await mkdtemp(join(tmpdir(), 'gpd-test-consent-'));
  const location = join(directory, 'gpd.db');
  const open: Database[] = [];
  const connect = async (): Promise<Database> => {
    const node = await openDatabase({ location, create: true });
    open.push(node);
    return node;
  };
  const database = await connect();
  await migrate(database);
  return {
    database,
    connect,
    async close() {
      for (const node of open) await node.close();
      await rm(directory, { recursive: true });
    },
  };
};

describe('consent on SQLite', () => {
  consentContract(make);
});
