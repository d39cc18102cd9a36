import { readdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { migrate, schemaState } from '../../../src/db/migrate.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import type { MakeDatabase, TestDatabase } from './database.ts';

const directory = new URL('../../../migrations/', import.meta.url);

async function migrationNames(): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.js')).sort();
}

/** The tables of gpd, without knex's own two. */
async function tables({ kind, read }: Database): Promise<string[]> {
  const query =
    kind === 'sqlite'
      ? read('sqlite_master').where({ type: 'table' }).whereNot('name', 'like', 'sqlite_%').pluck('name')
      : read('information_schema.tables').where({ table_schema: 'public' }).pluck('table_name');
  const names: string[] = await query;
  return names.filter((name) => !name.startsWith('knex_')).sort();
}

async function columns(database: Database): Promise<Record<string, unknown>> {
  const entries = (await tables(database)).map(async (name) => [
    name,
    await database.read(name).columnInfo(),
  ]);
  return Object.fromEntries(await Promise.all(entries)) as Record<string, unknown>;
}

export function migrateContract(make: MakeDatabase): void {
  describe('migrate', () => {
    let db: TestDatabase;
    beforeEach(async () => {
      db = await make('none');
    });
    afterEach(() => db.close());

    it('finds everything pending in an empty database, and does nothing the second time', async () => {
      const names = await migrationNames();
      expect(await schemaState(db.database)).toEqual({ pending: names, unknown: [] });
      expect(await migrate(db.database)).toEqual(names);
      expect(await schemaState(db.database)).toEqual({ pending: [], unknown: [] });
      const before = await columns(db.database);
      expect(Object.keys(before)).toContain('decisions');
      expect(await migrate(db.database)).toEqual([]);
      expect(await columns(db.database)).toEqual(before);
      expect(await readSnapshot(db.database, -1)).toMatchObject({ revision: 0 });
    });

    it('applies each once when several nodes start at the same time', async () => {
      const nodes = [db.database, await db.connect(), await db.connect()];
      await Promise.all(nodes.map((node) => migrate(node)));
      const names = await migrationNames();
      expect(await db.database.read('knex_migrations').orderBy('id').pluck('name')).toEqual(names);
      for (const node of nodes) expect(await schemaState(node)).toEqual({ pending: [], unknown: [] });
    });

    it('refuses a schema that a newer gpd wrote, and leaves it alone', async () => {
      await migrate(db.database);
      const newer = { name: '29991231_01_newer.js', batch: 9, migration_time: new Date() };
      await db.database.transaction((tx) => tx('knex_migrations').insert(newer));
      const last = (await migrationNames()).at(-1)!;
      await db.database.transaction((tx) => tx('knex_migrations').where({ name: last }).delete());
      expect(await schemaState(db.database)).toEqual({ pending: [last], unknown: [newer.name] });
      await expect(migrate(db.database)).rejects.toThrow(newer.name);
      expect(await schemaState(db.database)).toEqual({ pending: [last], unknown: [newer.name] });
    });

    it('refuses a schema from before the first release, in one sentence', async () => {
      await migrate(db.database);
      const old = { name: '20261120_01_tenants.js', batch: 1, migration_time: new Date() };
      await db.database.transaction((tx) => tx('knex_migrations').insert(old));
      await expect(migrate(db.database)).rejects.toThrow(
        'the database was made before gpd 0.1.0, the first release: make a new installation with gpd init',
      );
    });

    it('goes on where a crash stopped it, though the lock of knex is still held', async () => {
      await db.database.transaction(async (tx) => {
        await tx.schema.createTable('knex_migrations_lock', (t) => {
          t.increments('index');
          t.integer('is_locked');
        });
        await tx('knex_migrations_lock').insert({ index: 1, is_locked: 1 });
      });
      const names = await migrationNames();
      expect(await migrate(db.database)).toEqual(names);
      expect(await schemaState(db.database)).toEqual({ pending: [], unknown: [] });
    });
  });
}
