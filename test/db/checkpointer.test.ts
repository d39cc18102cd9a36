import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Database, openDatabase } from '../../src/db/engine.ts';
import { runSql } from '../../src/db/sql.ts';
import { createCheckpointer } from '../../src/db/sqlite.ts';
import { connect } from '../../src/db/sqlite-client.ts';
import { tempDir } from '../support/command.ts';

/** The write-ahead log goes into the file while the writer goes on. */

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
    let steps = 0;
    const checkpointer = createCheckpointer(async () => {
      connected += 1;
      const connection = await connect(location, []);
      const ask: typeof connection.ask = (...statement) => {
        steps += 1;
        return connection.ask(...statement);
      };
      return { ...connection, ask };
    });
    for (let i = 0; i < 7; i += 1) checkpointer.committed();
    await sleep(60);
    expect(connected).toBe(0);
    for (let i = 0; i < 30; i += 1) checkpointer.committed();
    await vi.waitFor(() => expect(steps).toBeGreaterThan(0));
    await checkpointer.close();
    const before = steps;
    for (let i = 0; i < 30; i += 1) checkpointer.committed();
    await sleep(60);
    expect(connected).toBe(1);
    expect(steps).toBe(before);
  });

  it('is at peace with what it cannot do, and tries again', async () => {
    const broken = join(directory, 'broken.db');
    await writeFile(broken, 'no database at all'.repeat(100));
    let connected = 0;
    const checkpointer = createCheckpointer(() => {
      connected += 1;
      return connect(broken, ['PRAGMA journal_mode=WAL']);
    });
    for (const times of [1, 2]) {
      for (let i = 0; i < 8; i += 1) checkpointer.committed();
      await vi.waitFor(() => expect(connected).toBeGreaterThanOrEqual(times));
      await sleep(20);
    }
    await checkpointer.close();
  });
});
