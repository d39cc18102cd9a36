import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/db/db.ts';
import { migrate } from '../../src/db/migrate.ts';
import { tempDir } from '../support/command.ts';

/** docs/scale.md says which tables a distributed PostgreSQL cannot split by tenant: exactly these. */

const PAGE = new URL('../../docs/scale.md', import.meta.url);

async function firstColumns(): Promise<ReadonlyMap<string, string>> {
  const database = await openDatabase({ location: join(tempDir('keys'), 'gpd.db'), create: true });
  await migrate(database);
  const tables = (await database
    .read('sqlite_master')
    .where({ type: 'table' })
    .whereNot('name', 'like', 'sqlite_%')
    .whereNot('name', 'like', 'knex_%')
    .pluck('name')) as string[];
  const first = new Map<string, string>();
  for (const table of tables) {
    const columns = (await database.read.raw(`PRAGMA table_info(${table})`)) as {
      name: string;
      pk: number;
    }[];
    first.set(table, columns.find(({ pk }) => pk === 1)?.name ?? '');
  }
  await database.close();
  return first;
}

it('every table’s primary key begins with the tenant, but those that docs/scale.md names', async () => {
  const first = await firstColumns();
  const others = [...first].filter(([, column]) => column !== 'kid').map(([table]) => table);
  const [, section = ''] = readFileSync(PAGE, 'utf8').split('### Keys without the tenant first');
  const rows = section.split('\n#')[0]?.match(/^\| `[^|]*\|/gm) ?? [];
  const named = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map((match) => match[1]));
  expect(new Set(named)).toEqual(new Set(others));
  expect(first.size - others.length).toBeGreaterThan(20);
});
