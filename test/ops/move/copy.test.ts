import type { Knex } from 'knex';
import { expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { readMeta, writeMeta } from '../../../src/db/meta-store.ts';
import {
  COPIED_TABLES,
  compareRows,
  copyMeta,
  copyRows,
  countRows,
  emptyAllTables,
} from '../../../src/ops/copy-store.ts';
import { rowOf, TABLES } from '../../../src/rights/person-map.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { onPostgres, onSqlite } from '../../db/contract/makers.ts';
import { missingPostgres, sharedPostgres } from '../../support/postgres.ts';
import { describeWithTool } from '../../support/tools.ts';

const ROWS = 3;
/** Texts that databases sort, store or escape differently. */
const TEXTS = ['Zoë \u{1f600} "quoted" \\ \n', 'a_B-C', 'ä'];

/** Fills every table with rows, with a null in every column that allows it. */
async function fillAll(database: Database): Promise<void> {
  const { read } = database;
  await database.transaction(emptyAllTables);
  for (const table of COPIED_TABLES) {
    const columns = Object.entries(await read(table).columnInfo());
    const rows = Array.from({ length: ROWS }, (_, n) => {
      const cellOf = ([name, { type, nullable }]: (typeof columns)[number]): unknown => {
        if (nullable && n === 0 && !rowOf(table).key.includes(name)) return null;
        if (name === 'seq') return n + 1;
        if (/int/.test(type)) return 2 ** (type === 'bigint' ? 52 : 30) + n;
        if (/bool/.test(type)) return n === 1;
        if (/blob|bytea/.test(type)) return Buffer.from([0, 255, n]);
        // The referenced decision must exist.
        return `${name === 'earlier' ? 'request_id' : name} ${n} ${TEXTS[n]}`;
      };
      return Object.fromEntries(columns.map((column) => [column[0], cellOf(column)]));
    });
    await database.transaction((tx) => tx(table).insert(rows));
  }
  await database.transaction((tx) => writeMeta(tx, 'a fact', 'of the installation'));
}

describeWithTool('a copy', await missingPostgres(), () => {
  type Maker = () => MakeDatabase | Promise<MakeDatabase>;
  it.each<[string, Maker, Maker]>([
    ['SQLite to PostgreSQL', onSqlite, () => onPostgres(sharedPostgres())],
    ['PostgreSQL to SQLite', () => onPostgres(sharedPostgres()), onSqlite],
  ])('%s has every row of every table, and is compared', async (_name, createFrom, createTo) => {
    const [from, to] = [await (await createFrom())(), await (await createTo())()];
    await fillAll(from.database);
    const [source, target] = [from.database, to.database];
    await target.transaction(emptyAllTables);
    const into = <T>(work: (tx: Knex.Transaction) => Promise<T>): Promise<T> => target.transaction(work);
    const half = Math.floor(COPIED_TABLES.length / 2);
    await copyRows(source.read, into, { tables: COPIED_TABLES.slice(0, half) });
    const { differs: missing } = await compareRows(source.read, target.read);
    expect(missing).toBe(COPIED_TABLES[half]);

    let copied = 0;
    await copyRows(source.read, into, {
      tables: COPIED_TABLES.slice(half),
      onRows: (rows) => (copied += rows),
    });
    expect(copied).toBe((COPIED_TABLES.length - half) * ROWS);
    await target.transaction((tx) => copyMeta(source.read, tx));
    expect(await readMeta(target, 'a fact')).toBe('of the installation');
    const { rows, differs } = await compareRows(source.read, target.read);
    expect([differs, rows]).toEqual([null, Object.fromEntries(COPIED_TABLES.map((table) => [table, ROWS]))]);
    expect(await countRows(target.read)).toBe(COPIED_TABLES.length * ROWS);
    // A new row gets the number after the last one.
    const serial = COPIED_TABLES.filter((table) => rowOf(table).key[0] === 'seq');
    expect(serial).toEqual(['webhook_outbox', 'audit_log']);
    const [outbox] = (await source.read('audit_log').limit(1)) as Record<string, unknown>[];
    await target.transaction((tx) => tx('audit_log').insert({ ...outbox, seq: undefined }));
    expect(await target.read('audit_log').max({ seq: 'seq' })).toEqual([{ seq: ROWS + 1 }]);

    await target.transaction((tx) =>
      tx('decisions').update({ verdict: '{}' }).where('kid', 'like', 'kid 2%'),
    );
    expect((await compareRows(source.read, target.read)).differs).toBe('decisions');
    await Promise.all([from.close(), to.close()]);
  });

  it('leaves out only what is written last and what ends by itself', () => {
    expect(TABLES.filter((table) => !COPIED_TABLES.includes(table))).toEqual(['rate_counters', 'meta']);
  });
});
