import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type Database, openDatabase } from '../../src/db/engine.ts';
import { type Bindings, runSql } from '../../src/db/sql.ts';
import { OutcomeUnknown, Unavailable } from '../../src/lib/errors.ts';
import { missingPgBouncer, type PgBouncer, startPgBouncer } from '../cluster/support/pgbouncer.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';

/** COMMIT of a failed transaction answers ROLLBACK, which PostgreSQL does not call an error. */

/** One row, then an effect that only the server has. */
const SCHEMA = [
  'CREATE TABLE rows (n integer PRIMARY KEY CHECK (n >= 0))',
  'CREATE SEQUENCE tries',
  `CREATE FUNCTION refuse_once(code text) RETURNS integer LANGUAGE plpgsql AS
    $$ BEGIN IF nextval('tries') = 1 THEN RAISE 'once' USING ERRCODE = code; END IF; RETURN 1; END $$`,
  `CREATE FUNCTION leave() RETURNS integer LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN 1; END $$`,
  `CREATE FUNCTION leave_late() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF NEW.n = 99 THEN PERFORM leave(); END IF; RETURN NEW; END $$`,
  `CREATE CONSTRAINT TRIGGER late AFTER INSERT ON rows DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION leave_late()`,
];

function contract(name: string, missing: string | null, pooled: boolean): void {
  describeWithTool(name, missing, () => {
    const server = sharedPostgres();
    let database: Database;
    beforeAll(async () => {
      const url = await server.freshUrl();
      let pool: PgBouncer | undefined;
      // One connection for all: what a failed transaction left on it would meet the next one.
      if (pooled) pool = await startPgBouncer(url, { settings: ['default_pool_size = 1'] });
      database = await openDatabase({ location: pool?.url ?? url });
      for (const sql of SCHEMA) await database.transaction((tx) => tx.raw(sql));
      return async () => {
        await database.close();
        await pool?.stop();
      };
    });

    const write = (n: number, also = '1', ...bindings: Bindings): Promise<string> =>
      database.transaction(async (tx) => {
        const sql = `INSERT INTO rows SELECT CAST(? AS integer) WHERE ${also} IS NOT NULL`;
        await runSql(tx, sql, [n, ...bindings]);
        return 'done';
      });
    const rows = async (): Promise<number[]> => database.read('rows').orderBy('n').pluck('n');
    /** Polls through the pool, which may still hold the connection of an ended session. */
    const expectNever = (n: number) => vi.waitFor(async () => expect(await rows()).not.toContain(n));

    it('fails with its own error, and leaves a connection that can be used', async () => {
      expect(await write(2)).toBe('done');
      expect(await rows()).toContain(2);
      for (let i = 0; i < 12; i += 1) {
        await expect(write(2)).rejects.toMatchObject({ code: '23505' });
        await expect(write(-1)).rejects.toMatchObject({ code: '23514' });
      }
      expect(await rows()).not.toContain(-1);
      expect(await write(3)).toBe('done');
    });

    it('is not done where an earlier statement failed and its error went unseen', async () => {
      const swallowed = database.transaction(async (tx) => {
        await tx('rows').insert({ n: 4 });
        await tx.raw('SELECT 1 / 0').catch(() => {});
        return 'done';
      });
      await expect(swallowed).rejects.toThrow();
      const last = database.transaction(async (tx) => {
        await runSql(tx, 'SELECT 1 / 0', []).catch(() => {});
        return runSql(tx, 'INSERT INTO rows VALUES (?)', [4]);
      });
      await expect(last).rejects.toMatchObject({ code: '25P02' });
      expect(await rows()).not.toContain(4);
    });

    it.each([
      ['40001', 11],
      ['40P01', 12],
    ])('is tried once more after SQLSTATE %s', async (code, n) => {
      await database.transaction((tx) => tx.raw('ALTER SEQUENCE tries RESTART'));
      expect(await write(n, 'refuse_once(CAST(? AS text))', code)).toBe('done');
    });

    it.each(['55P03', '57014'])('is known not to be done after SQLSTATE %s', async (code) => {
      await database.transaction((tx) => tx.raw('ALTER SEQUENCE tries RESTART'));
      const refused = write(20, 'refuse_once(CAST(? AS text))', code);
      await expect(refused).rejects.toBeInstanceOf(Unavailable);
      await expect(refused).rejects.not.toBeInstanceOf(OutcomeUnknown);
      expect(await rows()).not.toContain(20);
    });

    it('is not done when the connection breaks before the COMMIT, and is unknown when it breaks during the COMMIT', async () => {
      const writing = write(30, 'leave()');
      await expect(writing).rejects.toBeInstanceOf(Unavailable);
      await expect(writing).rejects.not.toBeInstanceOf(OutcomeUnknown);
      await expect(write(99)).rejects.toBeInstanceOf(OutcomeUnknown);
      await expectNever(30);
      await expectNever(99);
      expect(await write(31)).toBe('done');
    });
  });
}

describe('a transaction', async () => {
  const missing = await missingPostgres();
  contract('to PostgreSQL', missing, false);
  contract('through PgBouncer in transaction pooling', missing ?? missingPgBouncer(), true);
});
