import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import knexModule, { type Knex } from 'knex';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Database, openDatabase } from '../../src/db/engine.ts';
import { runSql } from '../../src/db/sql.ts';
import { createCheckpointer } from '../../src/db/sqlite.ts';
import { tempDir } from '../support/command.ts';

/** The write-ahead log goes into the file while the writer goes on. */

const { knex } = knexModule;
const PAGES = 60;

let directory: string;
let location: string;
let database: Database;

beforeEach(async () => {
  directory = tempDir('checkpointer');
  location = join(directory, 'gpd.db');
  database = await openDatabase({ location, create: true });
  await database.transaction((tx) => tx.raw('CREATE TABLE pages (page text NOT NULL)'));
});

afterEach(() => database.close());

/** Each row fills a page. */
const commit = (pages = PAGES): Promise<void> =>
  database.transaction(async (tx) => {
    for (let i = 0; i < pages; i += 1)
      await runSql(tx, 'INSERT INTO pages (page) VALUES (?)', ['p'.repeat(4000)]);
  });

async function progress(): Promise<{ log: number; checkpointed: number }> {
  const [row] = await database.read.raw('PRAGMA wal_checkpoint(NOOP)');
  return row;
}

const connect = (file = location): Knex =>
  knex({
    client: 'sqlite3',
    connection: { filename: file },
    useNullAsDefault: true,
    pool: { min: 1, max: 1 },
  });

describe('the write-ahead log', () => {
  it('goes into the file after some commits', async () => {
    for (let i = 0; i < 20; i += 1) await commit();
    // Far below what the writer's own checkpoint waits for.
    await vi.waitFor(async () => {
      const { log, checkpointed } = await progress();
      expect(log).toBeLessThan(4000);
      expect(checkpointed).toBeGreaterThan(20 * PAGES - 500 - PAGES);
    });
    expect(await database.read('pages').count({ n: '*' })).toEqual([{ n: 20 * PAGES }]);
  });

  it('is left alone after a few', async () => {
    // Pages enough, and commits too few.
    for (let i = 0; i < 3; i += 1) await commit(300);
    await sleep(100);
    expect((await progress()).checkpointed).toBe(0);
  });
});

describe('a checkpointer', () => {
  it('connects only once there was something to do, and nothing once it is closed', async () => {
    let connected = 0;
    const file = connect();
    const steps = vi.spyOn(file.client as { acquireConnection(): Promise<unknown> }, 'acquireConnection');
    const checkpointer = createCheckpointer(() => {
      connected += 1;
      return file;
    });
    for (let i = 0; i < 7; i += 1) checkpointer.committed();
    await sleep(60);
    expect(connected).toBe(0);
    for (let i = 0; i < 30; i += 1) checkpointer.committed();
    await vi.waitFor(() => expect(connected).toBe(1));
    await checkpointer.close();
    const before = steps.mock.calls.length;
    for (let i = 0; i < 30; i += 1) checkpointer.committed();
    await sleep(60);
    expect(connected).toBe(1);
    expect(steps.mock.calls.length).toBe(before);
  });

  it('is at peace with what it cannot do, and tries again', async () => {
    const broken = join(directory, 'broken.db');
    await writeFile(broken, 'no database at all'.repeat(100));
    const file = connect(broken);
    const raw = vi.spyOn(file.client as { acquireConnection(): Promise<unknown> }, 'acquireConnection');
    const checkpointer = createCheckpointer(() => file);
    for (const times of [1, 2]) {
      for (let i = 0; i < 8; i += 1) checkpointer.committed();
      await vi.waitFor(() => expect(raw.mock.calls.length).toBeGreaterThanOrEqual(times));
      await sleep(20);
    }
    await checkpointer.close();
  });
});
