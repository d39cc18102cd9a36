import type { Knex } from 'knex';
import type { TransactionOptions } from './postgres-client.ts';
import { runSqlite } from './sqlite-client.ts';

type Work<T> = (tx: Knex.Transaction) => Promise<T>;

/**
 * When somebody wrote last to a SQLite file, long deletions left out: in this process, or in another one, whose commits
 * `PRAGMA data_version` counts (sqlite.org/pragma.html).
 */
export function makeQuiet() {
  let wroteAt = Number.NEGATIVE_INFINITY;
  let version: number | undefined;
  function wrote(): void {
    wroteAt = performance.now();
  }
  async function lookForOthers(tx: Knex.Transaction): Promise<void> {
    const [seen] = (await runSqlite(tx, 'PRAGMA data_version', [])) as { data_version: number }[];
    if (version !== undefined && version !== seen?.data_version) wrote();
    version = seen?.data_version;
  }
  return {
    ms: () => performance.now() - wroteAt,
    wrote,
    /** A deletion that can be repeated looks for others, anything else is one. */
    watched<T>(work: Work<T>, how: TransactionOptions | undefined): Work<T> {
      if (how?.repeatable !== true) {
        wrote();
        return work;
      }
      return async (tx) => {
        await lookForOthers(tx);
        return work(tx);
      };
    },
  };
}
