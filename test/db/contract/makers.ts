import { copyFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import { runDir } from '../../support/command.ts';
import { migrated, type SharedPostgres } from '../../support/postgres.ts';
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

export function onPostgres(server: Pick<SharedPostgres, 'freshUrl'>): MakeDatabase {
  return async (schema = 'present') => {
    const location = await server.freshUrl(schema);
    return nodesOf(() => openDatabase({ location }));
  };
}

/** The last test of a suite: two nodes that wait for each other's rows end with an error of one of them. */
export function withoutDeadlock(server: Pick<SharedPostgres, 'log'>): void {
  it('did all of that without one deadlock', async () => {
    const log = await server.log();
    expect(log).toContain('ready to accept connections');
    expect(log.match(/.*deadlock detected.*\n(?:.*\n){0,4}/g) ?? []).toEqual([]);
  });
}
