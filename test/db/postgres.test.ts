import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/db/engine.ts';
import { migrate, schemaState } from '../../src/db/migrate.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { holdTransaction, someoneWaits } from './contract/database.ts';
import { onPostgres, withoutDeadlock } from './contract/makers.ts';
import { storageContract } from './contract/storage.ts';

describeWithTool('storage on PostgreSQL', await missingPostgres(), () => {
  const server = sharedPostgres();
  const make = onPostgres(server);

  storageContract(make);
  withoutDeadlock(server);

  it('reads int8 as a number and speaks UTF-8', async () => {
    const db = await make('none');
    const { rows } = await db.database.read.raw("SELECT 8640000000000000::int8 AS ms, '🐢' AS text");
    expect(rows).toEqual([{ ms: 8_640_000_000_000_000, text: '🐢' }]);
    await db.close();
  });

  it('compiles no statement of a write: a scan that has no index looks dear enough for it', async () => {
    const db = await make('none');
    const shown = [
      await db.database.read.raw('SHOW jit'),
      await db.database.transaction((tx) => tx.raw('SHOW jit')),
    ];
    expect(shown.map(({ rows }) => rows)).toEqual([[{ jit: 'on' }], [{ jit: 'off' }]]);
    await db.close();
  });

  it('is unavailable where nothing listens', async () => {
    const database = await openDatabase({ location: 'postgres://postgres:x@127.0.0.1:1/none' });
    await expect(database.transaction((tx) => tx.raw('SELECT 1'))).rejects.toBeInstanceOf(Unavailable);
    await expect(database.read('meta').select()).rejects.toBeInstanceOf(Unavailable);
    await database.close();
  });

  it('closes a connection whose answer it did not wait for: nobody gets it in the middle of a transaction', async () => {
    const db = await make('none');
    const pidOf = (rows: { pid: number }[]): number | undefined => rows[0]?.pid;
    let abandoned: number | undefined;
    const hung = db.database.transaction(async (tx) => {
      abandoned = pidOf((await tx.raw('SELECT pg_backend_pid() AS pid')).rows);
      await tx.raw('SET LOCAL statement_timeout = 0');
      await tx.raw('SELECT pg_sleep(11)');
    });
    await expect(hung).rejects.toBeInstanceOf(Unavailable);
    const next = await db.database.read.raw('SELECT pg_backend_pid() AS pid');
    expect(pidOf(next.rows)).not.toBe(abandoned);
    await db.close();
  });

  it('leaves a server that turned read-only: the next connection may lead to the new primary', async () => {
    const db = await make('none');
    const pidOf = async (): Promise<number> =>
      (await db.database.read.raw('SELECT pg_backend_pid() AS pid')).rows[0].pid;
    const before = await pidOf();
    await db.database.read.raw('SET default_transaction_read_only = on');
    const write = db.database.transaction((tx) => tx.raw('CREATE TABLE later (n integer)'));
    await expect(write).rejects.toBeInstanceOf(Unavailable);
    expect(await pidOf()).not.toBe(before);
    await db.database.transaction((tx) => tx.raw('CREATE TABLE later (n integer)'));
    await db.close();
  });

  it('keeps its connection after a statement that failed, in a transaction and outside', async () => {
    const db = await make('none');
    const pids = new Set<number>();
    for (let i = 0; i < 3; i += 1) {
      await expect(db.database.transaction((tx) => tx.raw('SELECT 1 / 0'))).rejects.toThrow('zero');
      await expect(db.database.read.raw('SELECT 1 / 0')).rejects.toThrow('zero');
      pids.add((await db.database.read.raw('SELECT pg_backend_pid() AS pid')).rows[0].pid);
    }
    expect(pids.size).toBe(1);
    await db.close();
  });

  it('is unavailable when the server drops the connection in a transaction, and works again after', async () => {
    const db = await make('none');
    // The client learns of it before, during or after its next statement: each has its own error.
    for (const waitMs of [0, 0, 1, 5, 20, 50]) {
      const dropped = db.database.transaction(async (tx) => {
        const { rows } = await tx.raw('SELECT pg_backend_pid() AS pid');
        await db.database.read.raw('SELECT pg_terminate_backend(?)', [rows[0].pid]);
        await sleep(waitMs);
        await tx.raw('SELECT 1');
      });
      await expect(dropped, `after ${waitMs} ms`).rejects.toBeInstanceOf(Unavailable);
    }
    const one = db.database.transaction(async (tx) => (await tx.raw('SELECT 1 AS one')).rows);
    expect(await one).toEqual([{ one: 1 }]);
    await db.close();
  });

  it('ends a statement that never ends, in a transaction and outside, but no change of the schema', async () => {
    const db = await make('none');
    const limit = async (knex: Knex): Promise<unknown> =>
      (await knex.raw('SHOW statement_timeout')).rows[0].statement_timeout;
    expect(await limit(db.database.read)).toBe('9s');
    expect(await db.database.transaction(limit)).toBe('9s');
    expect(await db.database.longTransaction(limit)).toBe('0');
    await db.close();
  });

  it('gives a migration up that waits for a lock, so that nobody queues up behind it', async () => {
    const db = await make('none');
    const { pending } = await schemaState(db.database);
    // Somebody is about to make a table that it makes too.
    const holder = await holdTransaction(await db.connect(), (tx) => tx.raw('CREATE TABLE meta (name text)'));
    await expect(migrate(db.database)).rejects.toBeInstanceOf(Unavailable);
    await holder.giveBack();
    expect(await schemaState(db.database)).toEqual({ pending, unknown: [] });
    await db.close();
  });

  it('refuses a schema that a newer node wrote while this one waited to migrate', async () => {
    const db = await make('none');
    const [node, newer] = [await db.connect(), await db.connect()];
    const name = '29991231_01_newer.js';
    const holder = await holdTransaction(newer, async (tx) => {
      await tx.raw('SELECT pg_advisory_xact_lock(7208963411)');
      await tx.raw('CREATE TABLE knex_migrations (name text)');
      await tx.raw('INSERT INTO knex_migrations VALUES (?)', [name]);
    });
    const migrating = migrate(node);
    migrating.catch(() => {});
    await someoneWaits(db.database);
    await holder.commit();
    await expect(migrating).rejects.toThrow(`written by a newer gpd (${name})`);
    await db.close();
  });
});
