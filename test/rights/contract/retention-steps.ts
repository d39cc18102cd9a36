import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { type Bindings, insertMany, rowsOf } from '../../../src/db/sql.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import { addTenant, holdTransaction, type MakeDatabase } from '../../db/contract/database.ts';
import { type NotedStatement, noteStatements } from '../../support/database.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

const OLD = NOW - 40 * DAY;
/** Tables in which a tenant has millions of rows. */
const LARGE =
  /\b(decisions|sightings|visitor_index|contests|links|credentials|webhook_outbox|signal_summaries)\b/;
/** Reads all that is due, all of a tenant, or everybody's. */
const WIDE = /^SCAN|Seq Scan|decided_at_index|\(kid=\? AND (decided_at|status)[<=]|\(kid=\?\)$/;
/** The line below a scan of one of them that reads all of a tenant. */
const OF_TENANT = /Index Cond: \(kid = '[^']*'::text\)$/;
const FILLED = /\b(decisions|sightings|visitor_index|links)\b/;

/** A step of retention must not read and lock again the rows that an earlier step has passed. */
export function retentionStepsContract(make: MakeDatabase): void {
  describe('the steps of retention', () => {
    const { db, other } = twoNodes(make);

    const insert = (table: string, columns: string, rows: readonly Bindings[]) =>
      db.database.transaction((tx) => insertMany(tx, `INSERT INTO ${table} (${columns})`, rows));
    const ids = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => String(i).padStart(6, '0'));
    const addRows = (
      table: string,
      columns: string,
      count: number,
      row: (id: string, i: number) => Bindings,
    ) => insert(table, columns, ids(count).map(row));
    const addDecisions = (kid: string, count: number) => {
      const columns = 'kid, request_id, decided_at, class, durable, verdict, salt, commitment';
      return addRows('decisions', columns, count, (id, i) => [
        kid,
        `req_${kid}${id}`,
        OLD + i,
        'human',
        `d${id}`,
        '{}',
        's',
        'c',
      ]);
    };
    const addDevices = async (kid: string, count: number) => {
      const sighting = (id: string) => [kid, `d${id}`, OLD, OLD, 1];
      await addRows('sightings', 'kid, durable, first_at, last_at, seen', count, sighting);
      const visitorId = (id: string) => [kid, `v${id}`, `d${id}`, 690, NOW + 400 * DAY];
      await addRows('visitor_index', 'kid, visitor_id, durable, epoch, ends_at', count, visitorId);
    };
    const addLinks = (kid: string, count: number) =>
      addRows('links', 'kid, request_id, principal, linked_at', count, (id, i) => [
        kid,
        `req_${kid}${id}`,
        'p',
        OLD + i,
      ]);
    const addAll = async (kid: string, count: number): Promise<void> => {
      for (const add of [addDecisions, addDevices, addLinks]) await add(kid, count);
    };
    const rulesOf = (kid: string) => ({ kid, days: 30, now: NOW });

    // Guards against: on SQLite each step read all 408,000 due rows inside the write transaction, and 34 went a second.
    it('finds the rows of a step by their keys', async () => {
      const kid = await addTenant(db.database, 'by-key');
      await addAll(kid, 600);
      const ran: NotedStatement[] = [];
      const watched: Database = {
        ...db.database,
        transaction: (work) =>
          db.database.transaction(async (tx) => {
            noteStatements(tx, (statement) => ran.push(statement));
            return work(tx);
          }),
      };
      const found = { decisions: 600, links: 600, sightings: 600, visitorIndex: 600 };
      expect(await deleteExpired(watched, rulesOf(kid))).toMatchObject(found);
      // The statistics are those of the beginning of a large run.
      await addAll(kid, 6000);
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
