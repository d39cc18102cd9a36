import { beforeAll, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/db/engine.ts';
import { gpdJson, runProgram, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { missingPgBouncer, type PgBouncerOptions, startPgBouncer } from './support/pgbouncer.ts';

/** The modes of PgBouncer, and what gpd says of those that do not do. */

interface Examined {
  readonly checks: readonly { readonly id: string; readonly status: string; readonly detail: string }[];
}

describeWithTool('PgBouncer before PostgreSQL', (await missingPostgres()) ?? missingPgBouncer(), () => {
  let postgres: PostgresServer;
  let direct: string;
  const dataDir = tempDir('pooler');
  const env = (location: string) => ({ GPD_DATA_DIR: dataDir, GPD_DATABASE_URL: location });
  beforeAll(async () => {
    postgres = await startPostgres();
    direct = await postgres.freshUrl();
    await gpdJson(['init', '--tenant', KID, '--origin', ORIGIN], { env: env(direct) });
    return () => postgres.stop();
  });

  async function through<T>(options: PgBouncerOptions, work: (location: string) => Promise<T>): Promise<T> {
    const pool = await startPgBouncer(direct, options);
    try {
      return await work(pool.url);
    } finally {
      await pool.stop();
    }
  }

  async function withDatabase<T>(location: string, work: (database: Database) => Promise<T>): Promise<T> {
    const database = await openDatabase({ location });
    try {
      return await work(database);
    } finally {
      await database.close();
    }
  }

  async function pooler(location: string): Promise<Examined['checks'][number] | undefined> {
    const { stdout } = await runProgram(['doctor', '--json'], { env: env(location) });
    return (JSON.parse(stdout) as Examined).checks.find(({ id }) => id === 'database.pooler');
  }

  const limitOf = (database: Database): Promise<string> =>
    database.transaction(async (tx) => {
      const { rows } = await tx.raw('SHOW statement_timeout');
      return String(rows[0].statement_timeout);
    });

  it('reports a connection that goes straight to PostgreSQL', async () => {
    expect(await pooler(direct)).toMatchObject({
      status: 'pass',
      detail: 'connected directly to PostgreSQL',
    });
  });

  it.each(['transaction', 'session'] as const)(
    'mode %s: writes have a time limit, reads are warned of',
    async (mode) => {
      await through({ mode }, async (location) => {
        expect(await withDatabase(location, limitOf)).toBe('9s');
        expect(await pooler(location)).toMatchObject({
          status: 'warn',
          detail: expect.stringMatching(/no time limit/),
        });
      });
    },
  );

  it('the limit of a transaction stays in it: the next one on that backend is a stranger', async () => {
    await through({ settings: ['default_pool_size = 1'] }, (location) =>
      withDatabase(location, async (database) => {
        expect(await limitOf(database)).toBe('9s');
        const { rows } = await database.read.raw('SHOW statement_timeout');
        expect(rows).toEqual([{ statement_timeout: '0' }]);
      }),
    );
  });

  it('is content where the role brings the limit for reads', async () => {
    await withDatabase(direct, (database) =>
      database.transaction((tx) => tx.raw("ALTER ROLE postgres SET statement_timeout = '9s'")),
    );
    await through({}, async (location) => {
      expect(await pooler(location)).toMatchObject({ status: 'pass' });
    });
    await withDatabase(direct, (database) =>
      database.transaction((tx) => tx.raw('ALTER ROLE postgres RESET statement_timeout')),
    );
  });

  it('mode statement: nothing is written, and gpd doctor says why', async () => {
    await through({ mode: 'statement' }, async (location) => {
      const args = ['apikeys', 'create', KID, '--scope', 'secret', '--name', 'n'];
      expect((await runProgram(args, { env: env(location) })).code).not.toBe(0);
      expect(await pooler(location)).toMatchObject({
        status: 'fail',
        detail: expect.stringMatching(/splits transactions/),
      });
    });
    const keys = await withDatabase(direct, (database) => database.read('api_keys').select('id'));
    expect(keys).toEqual([]);
  });
});
