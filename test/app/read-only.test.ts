import { join } from 'node:path';
import pg from 'pg';
import { beforeAll, expect, it } from 'vitest';
import { gpdJson, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';

/** A failover leaves connections to a server that only reads (SQLSTATE 25006). */

describeWithTool('a PostgreSQL that only reads', await missingPostgres(), () => {
  let gpd: Gpd;
  let client: pg.Client;
  let key: string;
  let database: string;
  beforeAll(async () => {
    const url = await sharedPostgres().freshUrl();
    database = new URL(url).pathname.slice(1);
    const dataDir = join(tempDir('read-only'), 'gpd-data');
    const env = { GPD_DATABASE_URL: url, GPD_DATA_DIR: dataDir };
    await gpdJson(['init', '--tenant', KID, '--origin', ORIGIN], { env });
    const create = ['apikeys', 'create', KID, '--scope', 'secret', '--name', 't'];
    ({ key } = await gpdJson<{ key: string }>(create, { env }));
    gpd = await startGpd({ dataDir, settings: { GPD_DATABASE_URL: url }, app: { intervals: { poll: 20 } } });
    client = new pg.Client({ connectionString: url });
    await client.connect();
    return async () => {
      await client.end();
      await gpd.stop();
    };
  });

  const call = (path: string, body?: object): Promise<Response> =>
    fetch(`${gpd.url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const grant = (): Promise<Response> =>
    call('/v1/consent/grant', { principalId: 'erika', purposes: ['device-identification'] });
  const statusOf = async (path: string): Promise<number> => (await call(path)).status;

  /** Time of the database, in its own format. */
  async function now(): Promise<string> {
    const { rows } = await client.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
    return rows[0]?.now ?? '';
  }

  /** Every connection from before the switch. One that was just beginning is not listed at once, and escapes a single look. */
  async function dropOlder(than: string): Promise<void> {
    const older = 'datname = current_database() AND pid <> pg_backend_pid() AND backend_start < $1';
    await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${older}`, [than]);
  }

  async function notReady(): Promise<unknown> {
    const body = (await (await call('/readyz')).json()) as { notReady: string[] };
    return body.notReady;
  }

  it('is a time to try again, and not ready, until it writes again', async () => {
    expect((await grant()).status).toBe(201);
    await client.query(`ALTER DATABASE "${database}" SET default_transaction_read_only = on`);
    const switched = await now();
    const looked = expect.poll(async () => {
      await dropOlder(switched);
      return notReady();
    });
    await looked.toEqual(['database: it takes no writes']);
    expect(await statusOf('/readyz')).toBe(503);
    const refused = await grant();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(await refused.json()).toMatchObject({ error: 'unavailable' });
    // The connections that only read are still there; the next ones write. Nobody sends anything to what is not ready.
    await client.query(`ALTER DATABASE "${database}" RESET default_transaction_read_only`);
    await expect.poll(() => statusOf('/readyz')).toBe(200);
    await expect.poll(async () => (await grant()).status).toBe(201);
    expect(gpd.logs()).not.toContain('"event":"fault"');
  });
});
