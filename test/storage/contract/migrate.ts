import { readdir } from 'node:fs/promises';
import type { Knex } from 'knex';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSnapshot } from '../../../src/app/snapshot-store.ts';
import type { Database } from '../../../src/db/db.ts';
import { migrate, schemaState } from '../../../src/db/migrate.ts';
import type { MakeDatabase, TestDatabase } from './database.ts';

const directory = new URL('../../../migrations/', import.meta.url);

async function migrationNames(): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.js')).sort();
}

async function load(name: string): Promise<Knex.Migration> {
  return (await import(new URL(name, directory).href)) as Knex.Migration;
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

/** The columns and the indexes too: a migration may change nothing else. */
async function shape(database: Database): Promise<string[]> {
  const { kind, read } = database;
  const indexes: string[] =
    kind === 'sqlite'
      ? await read('sqlite_master').where({ type: 'index' }).pluck('name')
      : await read('pg_indexes').where({ schemaname: 'public' }).pluck('indexname');
  const names = await tables(database);
  const parts = names.map(async (name) =>
    Object.keys(await read(name).columnInfo()).map((column) => `${name}.${column}`),
  );
  return [...names, ...(await Promise.all(parts)).flat(), ...indexes].sort();
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

    it('finds everything pending in an empty database, and nothing after', async () => {
      const names = await migrationNames();
      expect(await schemaState(db.database)).toEqual({ pending: names, unknown: [] });
      expect(await migrate(db.database)).toEqual(names);
      expect(await schemaState(db.database)).toEqual({ pending: [], unknown: [] });
      expect(await tables(db.database)).toContain('decisions');
    });

    it('does nothing the second time', async () => {
      await migrate(db.database);
      const before = await columns(db.database);
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

    it('goes on where a crash stopped it, though the lock of knex is still held', async () => {
      await migrate(db.database);
      const whole = await shape(db.database);
      const last = (await migrationNames()).at(-1)!;
      const { down } = await load(last);
      await db.database.transaction(async (tx) => {
        await down?.(tx);
        await tx('knex_migrations').where({ name: last }).delete();
        await tx('knex_migrations_lock').update({ is_locked: 1 });
      });
      expect(await shape(db.database)).not.toEqual(whole);
      expect(await migrate(db.database)).toEqual([last]);
      expect(await shape(db.database)).toEqual(whole);
    });

    it('comes up, goes down and comes up the same', async () => {
      await migrate(db.database);
      const first = await columns(db.database);
      const names = await migrationNames();
      await db.database.transaction(async (tx) => {
        for (const name of [...names].reverse()) await (await load(name)).down?.(tx);
        await tx('knex_migrations').delete();
      });
      expect(await tables(db.database)).toEqual([]);
      expect(await migrate(db.database)).toEqual(names);
      expect(await columns(db.database)).toEqual(first);
    });

    it('undoes with each migration exactly what that one did', async () => {
      const stages: string[][] = [];
      const names = await migrationNames();
      await db.database.transaction(async (tx) => {
        const node = { ...db.database, read: tx as unknown as Knex };
        for (const name of names) {
          stages.push(await tables(node));
          await (await load(name)).up(tx);
        }
        for (const name of [...names].reverse()) {
          await (await load(name)).down?.(tx);
          expect(await tables(node), `after ${name} went down`).toEqual(stages.pop());
        }
      });
    });
  });
}
