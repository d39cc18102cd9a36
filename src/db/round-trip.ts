import type { Knex } from 'knex';
import type { ClientInternals } from './availability.ts';
import { type Bindings, type HotTransaction, hasRowLocks, MAX_PARAMETERS, runHot } from './sql.ts';

/** Statements that share a round trip to PostgreSQL, so that a lock is held for less time. */

const unread = new WeakMap<object, Promise<unknown>>();

/** The writes of a transaction whose answers are still to be read: only they say whether anything was written. */
export const unreadWrites = (tx: object): Promise<unknown> | undefined => unread.get(tx);

/** Resolves when the driver has it: what follows, the COMMIT as a rule, is sent behind it, and no lock waits for an answer. */
async function sendUnread(tx: Knex.Transaction, sql: string, bindings: Bindings): Promise<void> {
  const client = tx.client as ClientInternals;
  const answer = client.query(await client.acquireConnection(), { sql, bindings });
  const all = Promise.all([unread.get(tx), answer]);
  all.catch(() => {});
  unread.set(tx, all);
}

/**
 * Writes of one transaction that touch a table each and whose answers nobody reads: on PostgreSQL one statement that is not waited
 * for, so that a lock is held for one round trip in place of many. `work` sends them by {@link runHot} and {@link insertMany}.
 */
export async function inOneStatement<T>(
  tx: HotTransaction,
  work: (tx: HotTransaction) => Promise<T>,
): Promise<T> {
  if (!hasRowLocks(tx)) return work(tx);
  const writes: { readonly sql: string; readonly bindings: Bindings }[] = [];
  const raw = (sql: string, bindings: Bindings): Promise<number> =>
    Promise.resolve(writes.push({ sql, bindings }));
  const result = await work(Object.create(tx, { raw: { value: raw } }) as HotTransaction);
  const bindings = writes.flatMap((write) => write.bindings);
  if (bindings.length > MAX_PARAMETERS) {
    for (const write of writes) await runHot(tx, write.sql, write.bindings);
  } else if (writes.length > 0) {
    const all = writes.map(({ sql }, i) => `w${i} AS (${sql})`).join(', ');
    await sendUnread(tx as Knex.Transaction, `WITH ${all} SELECT 1`, bindings);
  }
  return result;
}

type Work<T> = () => Promise<T>;

/**
 * Hot statements that do not wait for each other's answers: pipelined on PostgreSQL, so that a lock is held for one round trip. Each
 * sees what was committed when its turn came, so those behind a lock see what its last holder wrote. One after the other on SQLite.
 */
export async function pipelined<A, B, C>(
  tx: HotTransaction,
  ...[a, b, c]: readonly [Work<A>, Work<B>, Work<C>]
): Promise<[A, B, C]> {
  if (!hasRowLocks(tx)) return [await a(), await b(), await c()];
  return Promise.all([a(), b(), c()]);
}
