import {
  type Bindings,
  bypassesKnex,
  type HotTransaction,
  hasRowLocks,
  MAX_PARAMETERS,
  runHot,
} from './sql.ts';

/** Statements that share a round trip to PostgreSQL, so that a lock is held for less time. */

/**
 * Writes of one transaction that touch a table each and whose answers nobody reads: on PostgreSQL one statement, so that a lock is
 * held for one round trip in place of many. `work` sends them by {@link runHot} and {@link insertMany}.
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
    await runHot(tx, `WITH ${all} SELECT 1`, bindings);
  }
  return result;
}

/** A value in the text of a statement; what is not plain in hex, so that nothing in it is read as SQL. */
function literal(value: Bindings[number]): string {
  if (typeof value !== 'string') return String(value);
  if (/^[\w.:/=+|-]*$/.test(value)) return `'${value}'`;
  return `convert_from(decode('${Buffer.from(value).toString('hex')}', 'hex'), 'UTF8')`;
}

/** `?` is nothing but a binding in a hot statement. */
const withLiterals = (sql: string, bindings: Bindings): string =>
  sql.split('?').reduce((text, part, i) => text + literal(bindings[i - 1] ?? null) + part);

type Work<T> = (tx: HotTransaction) => Promise<T>;

/**
 * Hot statements that do not wait for each other's answers: on PostgreSQL one message, so that a lock is held for one round trip. Each
 * sees what was committed when its turn came, so those behind a lock see what its last holder wrote. One after the other on SQLite.
 */
export async function inOneMessage<A, B, C>(
  tx: HotTransaction,
  ...[a, b, c]: readonly [Work<A>, Work<B>, Work<C>]
): Promise<[A, B, C]> {
  if (bypassesKnex(tx) || !hasRowLocks(tx)) return [await a(tx), await b(tx), await c(tx)];
  type Waiting = { readonly sql: string; readonly resolve: (answer: unknown) => void };
  let waiting: Waiting[] = [];
  let failed = (_error: unknown): void => {};
  const send = async (): Promise<void> => {
    const sent = waiting;
    waiting = [];
    const answers: unknown = await tx.raw(sent.map(({ sql }) => sql).join(';\n'));
    for (const [i, { resolve }] of sent.entries()) resolve(Array.isArray(answers) ? answers[i] : answers);
  };
  const raw = (sql: string, bindings: Bindings): Promise<unknown> =>
    new Promise((resolve) => {
      const first = waiting.push({ sql: withLiterals(sql, bindings), resolve }) === 1;
      if (first) setImmediate(() => void send().catch(failed));
    });
  const message = Object.create(tx, { raw: { value: raw } }) as HotTransaction;
  return new Promise((resolve, reject) => {
    failed = reject;
    Promise.all([a(message), b(message), c(message)]).then(resolve, reject);
  });
}
