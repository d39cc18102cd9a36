import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { Unavailable } from '../lib/errors.ts';
import { lockHead } from './entries-store.ts';

/**
 * Acts that wait for the head of a tenant's log queue in this process, before they take a connection:
 * otherwise a crowd of erasures takes all connections of PostgreSQL to wait for one lock, and nobody is left
 * to answer checks and visits.
 */

/** Per tenant. Each act takes some tens of milliseconds. */
const MAX_WAITING = 200;
const RETRY_SECONDS = 5;

interface Queue {
  end: Promise<unknown>;
  waiting: number;
}

const queues = new WeakMap<Pick<Database, 'transaction'>, Map<string, Queue>>();

/**
 * @param options `mayRefuse: false` for staff, and for the rest of what has begun: strangers must not hold
 * them up
 * @throws {Unavailable} when too many wait; nothing was done
 */
export async function inTurn<T>(
  database: Pick<Database, 'transaction'>,
  kid: string,
  work: () => Promise<T>,
  { mayRefuse = true }: { readonly mayRefuse?: boolean } = {},
): Promise<T> {
  const byTenant = queues.get(database) ?? new Map<string, Queue>();
  queues.set(database, byTenant);
  const queue = byTenant.get(kid) ?? { end: Promise.resolve(), waiting: 0 };
  if (mayRefuse && queue.waiting >= MAX_WAITING)
    throw new Unavailable('too many erasures and objections are waiting', RETRY_SECONDS);
  byTenant.set(kid, queue);
  queue.waiting += 1;
  const result = queue.end.then(work);
  queue.end = result.catch(() => {});
  try {
    return await result;
  } finally {
    queue.waiting -= 1;
    if (queue.waiting === 0) byTenant.delete(kid);
  }
}

/**
 * A transaction that begins by locking the head of the tenant's log. With `changesTenant` it raises the
 * tenant's revision before that, in the order of those who write terms: another order would deadlock.
 */
export const withHead = <T>(
  database: Pick<Database, 'transaction'>,
  kid: string,
  work: (tx: Knex.Transaction) => Promise<T>,
  options: { readonly mayRefuse?: boolean; readonly changesTenant?: boolean } = {},
): Promise<T> =>
  inTurn(
    database,
    kid,
    () =>
      database.transaction(async (tx) => {
        if (options.changesTenant) await bumpTenant(tx, kid);
        await lockHead(tx, kid);
        return work(tx);
      }),
    options,
  );
