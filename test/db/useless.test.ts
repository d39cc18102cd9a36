import { expect, it, vi } from 'vitest';
import { closeWhenUseless } from '../../src/db/postgres.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { describeFault } from '../../src/ops/log-service.ts';

const coded = (message: string, code = ''): Error => Object.assign(new Error(message), { code });

/** A connection whose every answer is this failure, whichever way it is asked. */
function failing(error: Error) {
  const destroy = vi.fn();
  const connection = {
    __knex__disposed: undefined as unknown,
    connection: { stream: { destroy } },
    query(...args: unknown[]): unknown {
      const answer = args.at(-1);
      if (typeof answer !== 'function') return Promise.reject(error);
      answer(error, undefined);
      return undefined;
    },
  };
  closeWhenUseless(connection, () => {});
  return { connection, destroy, query: (...args: unknown[]) => connection.query(...args) };
}

// Guards against: a BEGIN that was given up went back into the pool, and the next one began inside of an open transaction.
it.each([
  [
    'asked with a callback',
    (query: (...args: unknown[]) => unknown) => new Promise((done) => query('SELECT 1', done)),
  ],
  [
    'asked for a promise, as BEGIN is',
    (query: (...args: unknown[]) => unknown) => query('BEGIN') as Promise<unknown>,
  ],
])('a connection that hangs is nobody’s any more: %s', async (_how, ask) => {
  const hung = failing(coded('Query read timeout'));
  await ask(hung.query).catch(() => {});
  expect(hung.connection.__knex__disposed).toBeInstanceOf(Error);
  expect(hung.destroy).toHaveBeenCalledOnce();

  const readOnly = failing(coded('cannot execute UPDATE in a read-only transaction', '25006'));
  await ask(readOnly.query).catch(() => {});
  expect(readOnly.connection.__knex__disposed).toBeInstanceOf(Error);
  expect(readOnly.destroy).not.toHaveBeenCalled();

  const refused = failing(coded('duplicate key', '23505'));
  await ask(refused.query).catch(() => {});
  expect(refused.connection.__knex__disposed).toBeUndefined();
});

it('an outage is logged with the code of the driver', () => {
  const outage = new Unavailable('later', 1, { cause: coded('lock timeout', '55P03') });
  expect(describeFault(outage)).toMatchObject({ name: 'Unavailable', code: '55P03' });
  expect(describeFault(coded('broken', 'EPIPE'))).toMatchObject({ name: 'Error', code: 'EPIPE' });
});
