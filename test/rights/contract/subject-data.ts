import { beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { setUpTables } from '../../../src/db/migrate.ts';
import { countOf, rowsOf } from '../../../src/db/sql.ts';
import { DAY } from '../../../src/lib/clock.ts';
import type { PersonColumn, TableName } from '../../../src/rights/person-map.ts';
import {
  type AgingTable,
  rowOf,
  TABLES,
  TENANT_DATA_TABLES,
  tablesWhere,
} from '../../../src/rights/person-map.ts';
import { COUNTED, cutoffsOf, deleteExpired, planRetention } from '../../../src/rights/retention/store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { createHouse } from '../../ops/contract/house.ts';
import { createEntry } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { started } from '../../support/started.ts';

/** Columns that name a person, whatever the table. */
const PERSONAL: readonly PersonColumn[] = ['durable', 'request_id', 'visitor_id', 'principal'];

interface Schema {
  readonly columns: ReadonlyMap<string, ReadonlySet<string>>;
  /** Columns of the primary key, in its order. */
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** `child parent` of every foreign key that cascades. */
  readonly cascades: ReadonlySet<string>;
}

const SQLITE = {
  columns: `SELECT m.name AS name, c.name AS col, c.pk AS pk FROM sqlite_master m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY c.pk`,
  cascades: `SELECT m.name AS child, f."table" AS parent FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
    WHERE m.type = 'table' AND f.on_delete = 'CASCADE'`,
};
const POSTGRES = {
  columns: `SELECT c.table_name AS name, c.column_name AS col, coalesce(array_position(i.indkey::int[], a.attnum::int) + 1, 0) AS pk
    FROM information_schema.columns c JOIN pg_class t ON t.relname = c.table_name AND t.relkind = 'r'
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = c.column_name
    LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisprimary WHERE c.table_schema = current_schema() ORDER BY pk`,
  cascades: `SELECT child.relname AS child, parent.relname AS parent FROM pg_constraint f
    JOIN pg_class child ON child.oid = f.conrelid JOIN pg_class parent ON parent.oid = f.confrelid
    WHERE f.contype = 'f' AND f.confdeltype = 'c'`,
};

async function readSchema({ kind, read }: Database): Promise<Schema> {
  const sql = kind === 'sqlite' ? SQLITE : POSTGRES;
  const columns = new Map<string, Set<string>>();
  const keys = new Map<string, string[]>();
  for (const { name, col, pk } of rowsOf<{ name: string; col: string; pk: number }>(
    await read.raw(sql.columns),
  )) {
    // Knex keeps its own tables for the migrations.
    if (name.startsWith('knex_')) continue;
    columns.set(name, (columns.get(name) ?? new Set()).add(col));
    if (Number(pk) > 0) keys.set(name, [...(keys.get(name) ?? []), col]);
  }
  const cascading = rowsOf<{ child: string; parent: string }>(await read.raw(sql.cascades));
  return { columns, keys, cascades: new Set(cascading.map(({ child, parent }) => `${child} ${parent}`)) };
}

/** A row of long ago in which texts that mean nothing are `x`, with these values. */
async function insertRow(
  database: Database,
  table: TableName,
  kid: string,
  values: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const row: Record<string, unknown> = {};
  for (const [name, { type }] of Object.entries(await database.read(table).columnInfo())) {
    if (name === 'seq' && rowOf(table).key[0] === 'seq') continue;
    if (name === 'kid') row[name] = kid;
    else if (name === 'state') row[name] = 'delivered';
    else if (name === 'kind') row[name] = 'consent';
    else if (/int/.test(type)) row[name] = 0;
    else if (/bool/.test(type)) row[name] = false;
    else row[name] = /blob|bytea/.test(type) ? Buffer.from('x') : 'x';
  }
  await database.transaction((tx) => tx(table).insert({ ...row, ...values }));
}

export function subjectDataContract(make: MakeDatabase): void {
  describe('the map of a person', () => {
    const db = started(make);
    let schema: Schema;
    beforeAll(async () => {
      schema = await readSchema(db.database);
    });

    it('has a row for every table of the schema, with its key and every column that names a person', () => {
      expect([...TABLES].sort()).toEqual([...schema.columns.keys()].sort());
      for (const table of TABLES) {
        expect(rowOf(table).key, table).toEqual(schema.keys.get(table));
        const columns = schema.columns.get(table) ?? new Set();
        // The subject of a receipt is a keyed reference.
        const personal = table === 'erasures' ? [] : PERSONAL.filter((column) => columns.has(column));
        expect([...rowOf(table).names].sort(), table).toEqual([...personal].sort());
      }
    });

    it('has autovacuum follow each of its tables, and one that a later migration makes', async () => {
      if (db.database.kind === 'sqlite') return;
      const fixture = await make();
      const followed = async (): Promise<readonly string[]> => {
        const options = await fixture.database.read.raw(
          `SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace
            AND 'autovacuum_vacuum_scale_factor=0.02' = ANY(reloptions) ORDER BY relname COLLATE "C"`,
        );
        return rowsOf<{ name: string }>(options).map(({ name }) => name);
      };
      expect(await followed()).toEqual([...TABLES].sort());
      await fixture.database.longTransaction(async (tx) => {
        await tx.raw('CREATE TABLE later (kid text)');
        await setUpTables(tx);
      });
      expect(await followed()).toEqual([...TABLES, 'later'].sort());
      await fixture.close();
    });

    // Guards against: PostgreSQL showed the durable id and the whole verdict of an erased person to whoever asked for its statistics.
    it('lets PostgreSQL sample no value that tells people apart', async () => {
      if (db.database.kind === 'sqlite') return;
      const fixture = await make();
      const { database } = fixture;
      // Few values, which tell nobody apart.
      const allowedColumns = ['kid', 'class', 'status', 'outcome', 'resolved_role', 'proposed_outcome'];
      allowedColumns.push('webhook', 'event', 'state', 'purpose', 'choice', 'scope', 'requested_by');
      const sampled = async (tables: readonly string[]) =>
        rowsOf<{ name: string }>(
          await database.read.raw(
            `SELECT attrelid::regclass || '.' || attname AS name FROM pg_attribute
              WHERE attrelid::regclass::text = ANY(?) AND atttypid IN ('text'::regtype, 'bytea'::regtype)
                AND attstattarget IS DISTINCT FROM 0 AND attname <> ALL(?)`,
            [[...tables], allowedColumns],
          ),
        );
      expect(await sampled(tablesWhere(({ names }) => names.length > 0))).toEqual([]);
      await database.longTransaction(async (tx) => {
        await tx.raw('CREATE TABLE later (kid text, durable text, note text, sealed bytea)');
        await tx.raw('ALTER TABLE links ADD COLUMN later text');
        await setUpTables(tx);
      });
      expect(await sampled(['later', 'links'])).toEqual([]);

      const kid = await addTenant(database, 'sampled');
      const recorder = createRecorder(database);
      await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          recorder.record(createEntry({ kid, id: `sampled-${i}`, durable: 'often' })),
        ),
      );
      const found = async (value: string): Promise<number> => {
        await database.longTransaction((tx) => tx.raw('ANALYZE'));
        const columns = `coalesce(most_common_vals::text, '') || coalesce(histogram_bounds::text, '')`;
        const sql = `SELECT 1 FROM pg_stats WHERE schemaname = current_schema() AND ${columns} LIKE ?`;
        return rowsOf(await database.read.raw(sql, [`%${value}%`])).length;
      };
      // The negative controls: one of few values, and a column that is sampled.
      expect(await found('sampled')).toBeGreaterThan(0);
      expect(await found('often')).toBe(0);
      await database.longTransaction((tx) =>
        tx.raw('ALTER TABLE decisions ALTER COLUMN durable SET STATISTICS 100'),
      );
      expect(await found('often')).toBe(1);
      await fixture.close();
    });

    it('knows what is deleted with the row of another table, and with the tenant', () => {
      for (const table of TABLES) {
        const { tenant, with: parent } = rowOf(table);
        const columns = schema.columns.get(table) ?? new Set();
        if (parent !== undefined) expect(schema.cascades, table).toContain(`${table} ${parent}`);
        if (tenant === 'stays') expect(columns, table).not.toContain('kid');
        if (tenant !== 'cascades' || table === 'tenants') continue;
        expect(schema.cascades, table).toContain(`${table} ${parent ?? 'tenants'}`);
      }
      const children = [...schema.cascades].filter((pair) => !pair.endsWith(' tenants'));
      const withParent = TABLES.filter((table) => rowOf(table).with !== undefined);
      expect(children.sort()).toEqual(withParent.map((table) => `${table} ${rowOf(table).with}`).sort());
      for (const table of TENANT_DATA_TABLES) {
        expect(schema.columns.get(table), table).toContain('kid');
        expect(schema.cascades, table).not.toContain(`${table} tenants`);
      }
    });

    it('what expires by time is deleted by housekeeping, and what somebody has to end stays', async () => {
      const kid = await addTenant(db.database, 'expires');
      const nonEmptyTables = async (tables: readonly TableName[]): Promise<TableName[]> => {
        const found: TableName[] = [];
        for (const table of tables) if (await db.database.read(table).first()) found.push(table);
        return found;
      };
      const timed = tablesWhere(({ expires }) => expires.includes('time'));
      const keptTables = tablesWhere(
        ({ names, expires }) => names.length > 0 && expires.every((by) => by === 'act'),
      );
      // Drafts hang on it.
      await insertRow(db.database, 'contests', kid);
      const over: Partial<Record<TableName, Readonly<Record<string, unknown>>>> = {
        // A hold keeps what is of its own device.
        legal_holds: { durable: 'held' },
        // An invitation that nobody used: of removed staff the name alone is deleted.
        staff: { joined_at: null, removed_at: null },
      };
      for (const table of [...timed, ...keptTables])
        await insertRow(db.database, table, kid, over[table] ?? {});
      expect(await nonEmptyTables([...timed, ...keptTables])).toEqual([...timed, ...keptTables]);
      const house = createHouse(db.database);
      expect(await house.round()).toEqual([]);
      await house.stop();
      expect(await nonEmptyTables(timed)).toEqual([]);
      expect(await nonEmptyTables(keptTables)).toEqual(keptTables);
    });

    it('ends at its cutoff: what is of that very hour stays, and an epoch that ends then is over', async () => {
      const kid = 'cutoff';
      await addTenant(db.database, kid);
      const now = 1000 * DAY;
      const cutoffs = cutoffsOf({ now, days: 30 });
      for (const table of Object.keys(COUNTED) as AgingTable[]) {
        const { ages, expires } = rowOf(table);
        const at = cutoffs[expires.includes('audit') ? 'audit' : 'retention'];
        for (const [n, time] of [at - 1, at].entries())
          await insertRow(db.database, table, kid, {
            ...ages?.where,
            [ages?.since[0] ?? '']: time,
            ...Object.fromEntries(rowOf(table).names.map((name) => [name, `${table}-${n}`])),
            ...(table === 'contests' && { contest_id: `c-${n}`, case_hash: null }),
          });
      }
      const ones = Object.fromEntries(Object.values(COUNTED).map((name) => [name, 1]));
      expect(await planRetention(db.database, { kid, days: 30, now })).toEqual({ ...ones, visitorIndex: 2 });
    });

    it('ends with its decision, and not while a contest leads to it', async () => {
      const kid = 'along';
      await addTenant(db.database, kid);
      const retention = { kid, days: 30, now: 1000 * DAY };
      const ofDevice = ['sightings', 'credentials', 'visitor_index'] as const;
      const ofRequest = ['decisions', 'signal_summaries', 'webhook_outbox'] as const;
      for (const table of [...ofRequest, ...ofDevice]) await insertRow(db.database, table, kid);
      const open = { contest_id: 'open', case_hash: null, status: 'open', request_id: 'other' };
      await insertRow(db.database, 'contests', kid, open);
      await deleteExpired(db.database, retention);
      const countRows = () =>
        Promise.all(
          [...ofRequest, ...ofDevice].map((table) => countOf(db.database.read(table).where({ kid }))),
        );
      expect(await countRows()).toEqual([0, 0, 0, 1, 1, 1]);
      await db.database.transaction((tx) => tx('contests').where({ kid }).delete());
      await deleteExpired(db.database, retention);
      expect(await countRows()).toEqual([0, 0, 0, 0, 0, 0]);
    });
  });
}
