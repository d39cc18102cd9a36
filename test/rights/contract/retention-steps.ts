import { createHash } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { Knex } from 'knex';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { type Bindings, hasRowLocks, insertMany, rowsOf } from '../../../src/db/sql.ts';
import { onConnection } from '../../../src/db/sqlite-client.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/entries.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  type TestDatabase,
} from '../../db/contract/database.ts';
import { NOW } from '../../support/make.ts';

const OLD = NOW - 40 * DAY;
/** Tables in which a tenant has millions of rows. */
const LARGE =
  /\b(decisions|sightings|visitor_index|contests|links|credentials|webhook_outbox|signal_summaries)\b/;
/** Reads all that is due, all of a tenant, or everybody's. */
const WIDE = /^SCAN|Seq Scan|decided_at_index|\(kid=\? AND (decided_at|status)[<=]|\(kid=\?\)$/;
/** The line below a scan of one of them that reads all of a tenant. */
const OF_TENANT = /Index Cond: \(kid = '[^']*'::text\)$/;
const FILLED = /\b(decisions|sightings|visitor_index|links)\b/;

interface Statement {
  readonly sql: string;
  readonly bindings: readonly unknown[];
}

/**
 * A transaction that bypasses knex fires no query event, so SQLite itself reports each statement with its
 * values.
 */
async function watchStatements(tx: Knex.Transaction, ran: Statement[]): Promise<void> {
  if (hasRowLocks(tx)) {
    tx.on('query', (query: Statement) => ran.push(query));
    return;
  }
  await onConnection(tx, async (connection) => {
    const events = connection as unknown as EventEmitter;
    if (events.listenerCount('trace') > 0) return;
    events.on('trace', (sql: string) => ran.push({ sql, bindings: [] }));
  });
}

/** A step of retention must not read and lock again the rows that an earlier step has passed. */
export function retentionStepsContract(make: MakeDatabase): void {
  describe('the steps of retention', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const insert = (table: string, columns: string, rows: readonly Bindings[]) =>
      db.database.transaction((tx) => insertMany(tx, `INSERT INTO ${table} (${columns})`, rows));
    const ids = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => String(i).padStart(6, '0'));
    const addDecisions = (kid: string, count: number) =>
      insert(
        'decisions',
        'kid, request_id, decided_at, class, durable, verdict, salt, commitment',
        ids(count).map((id, i) => [kid, `req_${kid}${id}`, OLD + i, 'human', `d${id}`, '{}', 's', 'c']),
      );
    const addDevices = async (kid: string, count: number) => {
      const columns = 'kid, durable, first_at, last_at, seen';
      await insert(
        'sightings',
        columns,
        ids(count).map((id) => [kid, `d${id}`, OLD, OLD, 1]),
      );
      await insert(
        'visitor_index',
        'kid, visitor_id, durable, epoch, ends_at',
        ids(count).map((id) => [kid, `v${id}`, `d${id}`, 690, NOW + 400 * DAY]),
      );
    };
    const addLinks = (kid: string, count: number) =>
      insert(
        'links',
        'kid, request_id, principal, linked_at',
        ids(count).map((id, i) => [kid, `req_${kid}${id}`, 'p', OLD + i]),
      );
    const rulesOf = (kid: string) => ({ kid, days: 30, now: NOW });

    // Guards against: on SQLite each step read all 408,000 due rows inside the write transaction, and 34 went a second.
    it('finds the rows of a step by their keys', async () => {
      const kid = await addTenant(db.database, 'by-key');
      await addDecisions(kid, 600);
      await addDevices(kid, 600);
      await addLinks(kid, 600);
      const ran: Statement[] = [];
      const watched: Database = {
        ...db.database,
        transaction: (work) =>
          db.database.transaction(async (tx) => {
            await watchStatements(tx, ran);
            return work(tx);
          }),
      };
      expect(await deleteExpired(watched, rulesOf(kid))).toMatchObject({
        decisions: 600,
        links: 600,
        sightings: 600,
        visitorIndex: 600,
      });
      // The statistics are those of the beginning of a large run.
      await addDecisions(kid, 6000);
      await addDevices(kid, 6000);
      await addLinks(kid, 6000);
      await db.database.transaction((tx) => tx.raw('ANALYZE'));
      const wide = new Set<string>();
      const looked = new Set<string>();
      await db.database.transaction(async (tx) => {
        const explain = db.database.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN (FORMAT TEXT)';
        for (const { sql, bindings } of ran.filter((query) => /^(select|delete)/i.test(query.sql))) {
          const plan = await tx.raw(`${explain} ${sql.replaceAll(/\$\d+/g, '?')}`, bindings as never);
          let above = '';
          for (const row of rowsOf<Record<string, string>>(plan)) {
            const line = row['detail'] ?? row['QUERY PLAN'] ?? '';
            if (OF_TENANT.test(line) && FILLED.test(above)) wide.add(`${above} ${line}`);
            above = line;
            const large = LARGE.exec(line)?.[0];
            if (large === undefined) continue;
            looked.add(large);
            if (WIDE.test(line.trim())) wide.add(line);
          }
        }
      });
      expect([...looked]).toEqual(
        expect.arrayContaining(['decisions', 'links', 'sightings', 'visitor_index']),
      );
      expect([...wide]).toEqual([]);
    });

    // Guards against: a step that was slow once made all that followed ten rows long.
    it('takes 250 rows a step however slow the database is, where nobody else writes', async () => {
      const kid = await addTenant(db.database, 'slow-steps');
      await addDecisions(kid, 1500);
      let steps = 0;
      const slow: Database = {
        ...db.database,
        quietMs: () => Number.POSITIVE_INFINITY,
        transaction: (work, options) =>
          db.database.transaction(async (tx) => {
            steps += 1;
            const done = await work(tx);
            for (const until = performance.now() + 40; performance.now() < until; );
            return done;
          }, options),
      };
      expect(await deleteExpired(slow, rulesOf(kid))).toMatchObject({ decisions: 1500 });
      // One says so in the log, and on SQLite one looks at what the tables hold now.
      const isSqlite = db.database.kind === 'sqlite';
      expect(steps).toBe(1 + 1500 / 250 + (isSqlite ? 1 : 0));
      if (!isSqlite) return;
      expect(await db.database.read('sqlite_stat1').where({ tbl: 'decisions' })).not.toEqual([]);
    });

    it('waits for the disk where it writes to the log, and not where it deletes', async () => {
      const kid = await addTenant(db.database, 'step-commits');
      await addDecisions(kid, 300);
      if (db.database.kind === 'sqlite') return;
      const commitModes: unknown[] = [];
      const watched: Database = {
        ...db.database,
        transaction: (work, options) =>
          db.database.transaction(async (tx) => {
            const [row] = rowsOf<Record<string, string>>(await tx.raw('SHOW synchronous_commit'));
            commitModes.push(row?.['synchronous_commit']);
            return work(tx);
          }, options),
      };
      await deleteExpired(watched, rulesOf(kid));
      expect(commitModes).toEqual(['on', 'off', 'off']);
    });

    // ADR 0053: what partitions would give back, as long as VACUUM follows the deletions.
    it('leaves room that the days after it fill', async () => {
      const fixture = await make();
      const { database } = fixture;
      const kid = await addTenant(database, 'turnover');
      const [daysKept, turns, perDay] = [10, 20, 120];
      const begin = NOW - 100 * DAY;
      const addDay = (day: number) => {
        const rows = ids(perDay).map((id): Bindings => {
          const at = begin + day * DAY;
          const durable = createHash('sha256').update(`${day} ${id}`).digest('hex');
          return [kid, `req_${at}${id}`, at, 'human', durable, JSON.stringify(durable.repeat(10)), 's', 'c'];
        });
        const columns = 'kid, request_id, decided_at, class, durable, verdict, salt, commitment';
        return database.transaction((tx) => insertMany(tx, `INSERT INTO decisions (${columns})`, rows));
      };
      const sizeOf = async (): Promise<number> => {
        if (database.kind === 'postgres') {
          await database.onOwnConnection((connection) => connection.raw('VACUUM decisions'));
          const size = await database.read.raw("SELECT pg_total_relation_size('decisions') AS n");
          return Number(rowsOf<{ n: unknown }>(size)[0]?.n);
        }
        const pages = await database.read.raw('PRAGMA page_count');
        return rowsOf<{ page_count: number }>(pages)[0]?.page_count ?? 0;
      };
      for (let day = 0; day < daysKept; day += 1) await addDay(day);
      const before = await sizeOf();
      let after = 0;
      for (let day = daysKept; day < daysKept + turns; day += 1) {
        await addDay(day);
        const now = begin + day * DAY + HOUR;
        expect(await deleteExpired(database, { kid, days: daysKept, now })).toMatchObject({
          decisions: perDay,
        });
        after = await sizeOf();
      }
      // Three times as many went through it; a day more than is kept is there at once.
      expect(after / before).toBeLessThan(1.3);
      await fixture.close();
    });

    it('takes devices nobody can contest a decision of while the log is at work', async () => {
      const kid = await addTenant(db.database, 'beside-log');
      await addDevices(kid, 10);
      if (db.database.kind === 'sqlite') return;
      const writing = await holdTransaction(other, (tx) => lockHead(tx, kid));
      expect(await deleteExpired(db.database, rulesOf(kid))).toMatchObject({
        sightings: 10,
        visitorIndex: 10,
      });
      await writing.commit();
    });
  });
}
