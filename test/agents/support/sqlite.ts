import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import { migrate } from '../../../src/db/migrate.ts';

export interface SqliteFile {
  readonly database: Database;
  /** Another process on the same file, as far as the database can tell. */
  connect(): Promise<Database>;
  close(): Promise<void>;
}

/** A real SQLite file with the present schema. */
export async function createSqlite(): Promise<SqliteFile> {
  const directory = await mkdtemp(join(tmpdir(), 'gpd-test-'));
  const location = join(directory, 'gpd.db');
  const database = await openDatabase({ location, create: true });
  await migrate(database);
  const open = [database];
  return {
    database,
    async connect() {
      const other = await openDatabase({ location });
      open.push(other);
      return other;
    },
    async close() {
      for (const one of open) await one.close();
      await rm(directory, { recursive: true });
    },
  };
}
