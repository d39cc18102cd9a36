import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { expect, vi } from 'vitest';
import { macTerms } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { rowsOf } from '../../../src/db/sql.ts';
import { createLog } from '../../../src/log/entries-store.ts';
import { insertTenant } from '../../../src/tenants/tenant-store.ts';
import { termsOf } from '../../consent/contract/consent-support.ts';
import { createNewTenant } from '../../support/make.ts';

/** One database of a suite's own. */
export interface TestDatabase {
  readonly database: Database;
  /** Another node on the same database, with connections of its own. */
  connect(): Promise<Database>;
  /** Closes every connection and removes the database. */
  close(): Promise<void>;
}

/** Makes a database with the present schema, or with none. */
export type MakeDatabase = (schema?: 'present' | 'none') => Promise<TestDatabase>;

/** Inserts a tenant with an empty log under a kid of its own and returns the kid: tests of one suite share a database. */
export async function addTenant(database: Database, kid: string): Promise<string> {
  const inserted = await database.transaction(async (tx) => {
    if (!(await insertTenant(tx, createNewTenant(kid)))) return false;
    await createLog(tx, { kid, origin: `gpd.example/ledger/${kid}`, vkey: `key of ${kid}` });
    await macTerms(tx, termsOf(kid));
    return true;
  });
  if (!inserted) throw new Error(`${kid} is taken: every test takes a kid of its own`);
  return kid;
}

class GivenBack extends Error {}

/**
 * A transaction that has done `work` and holds what it locked, until it is told to commit or to give all back.
 * @returns when `work` is done
 */
export async function holdTransaction(
  database: Database,
  work: (tx: Knex.Transaction) => PromiseLike<unknown>,
): Promise<{ commit(): Promise<void>; giveBack(): Promise<void> }> {
  let end = (_commit: boolean): void => {};
  const committed = new Promise<boolean>((resolve) => {
    end = resolve;
  });
  let transaction: Promise<void> = Promise.resolve();
  await new Promise<void>((onLocked, reject) => {
    transaction = database.transaction(async (tx) => {
      await work(tx);
      onLocked();
      if (!(await committed)) throw new GivenBack();
    });
    transaction.catch(reject);
  });
  const finish = async (commit: boolean): Promise<void> => {
    end(commit);
    await transaction.catch((error: unknown) => {
      if (!(error instanceof GivenBack)) throw error;
    });
  };
  return { commit: () => finish(true), giveBack: () => finish(false) };
}

/** Lets `run` write on a database whose transaction has done all and does not commit until it is told to. */
export async function holdHot<T>(
  database: Database,
  run: (holding: Database) => Promise<T>,
): Promise<{ commit(): Promise<T> }> {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  return new Promise((onHeld, reject) => {
    const holding: Database = {
      ...database,
      transaction: (work) =>
        database.transaction(async (tx) => {
          const result = await work(tx);
          onHeld({
            commit() {
              release();
              return ran;
            },
          });
          await released;
          return result;
        }),
    };
    const ran = run(holding);
    ran.catch(reject);
  });
}

/** Until somebody waits for a lock; SQLite's one writer makes them wait for the whole file, which nobody can see. */
export async function someoneWaits({ kind, read }: Database): Promise<void> {
  if (kind === 'sqlite') return;
  const sql =
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  await vi.waitFor(async () => expect(rowsOf(await read.raw(sql))).not.toEqual([]), 5000);
}

/** The pause lets the other waiters come as far as they can. */
export async function othersWait(database: Database): Promise<void> {
  await Promise.all([someoneWaits(database), sleep(100)]);
}
