import { createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/db/engine.ts';
import { withTls } from '../../src/db/postgres.ts';
import { withClosing } from '../../src/lib/collections.ts';
import { scrubFiles } from '../../src/rights/erase/scrub-store.ts';
import { addApiKey } from '../support/api-key.ts';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { postJson } from '../support/http.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';

describeWithTool('a role that reads and writes rows and nothing else', await missingPostgres(), () => {
  let admin: pg.Client;
  let owner: string;
  let server: string;
  beforeAll(async () => {
    const url = new URL(await sharedPostgres().freshUrl());
    admin = new pg.Client({ connectionString: url.href });
    await admin.connect();
    const database = url.pathname.slice(1);
    const as = (role: string): string => url.href.replace(`//${url.username}:`, `//${role}_${database}:`);
    [owner, server] = [as('owner'), as('server')];
    for (const name of ['owner', 'server'])
      await admin.query(`CREATE ROLE "${name}_${database}" LOGIN PASSWORD '${url.password}'`);
    // The statements are those of docs/scale.md.
    await admin.query(`GRANT CREATE, USAGE ON SCHEMA public TO "owner_${database}"`);
    await admin.query(`REVOKE CREATE ON SCHEMA public FROM PUBLIC`);
    for (const [objects, rights] of [
      ['TABLES', 'SELECT, INSERT, UPDATE, DELETE'],
      ['SEQUENCES', 'USAGE'],
    ])
      await admin.query(
        `ALTER DEFAULT PRIVILEGES FOR ROLE "owner_${database}" IN SCHEMA public GRANT ${rights} ON ${objects} TO "server_${database}"`,
      );
  });
  afterAll(() => admin.end());

  const init = ['init', '--tenant', KID, '--origin', ORIGIN];

  it('reports who may change the schema', async () => {
    const env = { GPD_DATABASE_URL: server, GPD_DATA_DIR: join(tempDir('less'), 'gpd-data') };
    const refused = await runGpd(init, { env });
    expect(refused.code).toBe(78);
    expect(refused.stderr).toContain('set GPD_MIGRATE_DATABASE_URL');
    expect(refused.stderr).not.toContain(new URL(server).password);
  });

  it('serves tables that another role owns', async () => {
    const dataDir = join(tempDir('least'), 'gpd-data');
    const settings = { GPD_DATABASE_URL: server, GPD_MIGRATE_DATABASE_URL: owner };
    const env = { ...settings, GPD_DATA_DIR: dataDir };
    await gpdJson(init, { env });
    const { rows } = await admin.query(
      `SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'`,
    );
    expect(rows).toEqual([{ tableowner: new URL(owner).username }]);
    const gpd = await startGpd({ dataDir, settings: { GPD_DATABASE_URL: server } });
    const authorization = `Bearer ${await addApiKey(gpd)}`;
    const body = { principalId: 'erika', purposes: ['device-identification'] };
    expect((await postJson(gpd.url, '/v1/consent/grant', body, { authorization })).status).toBe(201);
    expect((await gpd.cli(['retention', 'run'])).code).toBe(0);
    expect((await gpd.cli(['migrate'])).code).toBe(0);
    await gpd.stop();
  });

  it('leaves the files to the role that owns the tables', async () => {
    const scrub = (location: string): Promise<string> =>
      withClosing(openDatabase({ location }), (as) => scrubFiles(as)).then(
        () => 'done',
        (error: Error) => error.name,
      );
    expect([await scrub(server), await scrub(owner)]).toEqual(['NotTheOwner', 'done']);
  });
});

describe('a connection to PostgreSQL', () => {
  const VERIFIED = '?sslmode=verify-full';
  it.each([
    ['db.example/gpd', `db.example/gpd${VERIFIED}`],
    ['db.example/gpd?sslrootcert=/ca.pem', 'db.example/gpd?sslrootcert=%2Fca.pem&sslmode=verify-full'],
    ['db.example/gpd?sslmode=disable', null],
    // The driver reads these as verify-full, and would warn of it.
    ['localhost/gpd?sslmode=require', `localhost/gpd${VERIFIED}`],
    ['db.example/gpd?sslmode=verify-ca', `db.example/gpd${VERIFIED}`],
    ['db.example/gpd?sslmode=require&uselibpqcompat=true', null],
    ['127.0.0.1:5432/gpd', null],
    ['[::1]/gpd', null],
    ['localhost/gpd', null],
    // No loopback, whatever it begins with.
    ['127.0.0.1.example/gpd', `127.0.0.1.example/gpd${VERIFIED}`],
  ])('to %s is encrypted where it leaves the machine', (place, becomes) => {
    expect(withTls(`postgres://gpd@${place}`)).toBe(`postgres://gpd@${becomes ?? place}`);
  });

  it('to a socket of this machine is not', () => {
    const url = 'postgres:///gpd?host=/var/run/postgresql';
    expect(withTls(url)).toBe(url);
  });

  it('says what to do about a server that offers no TLS', async () => {
    const refusing = createServer((socket) => socket.once('data', () => socket.end('N')));
    await new Promise<void>((listening) => refusing.listen(0, '127.0.0.1', listening));
    const { port } = refusing.address() as { port: number };
    const location = `postgres://a:b@127.0.0.1:${port}/c${VERIFIED}`;
    const database = await openDatabase({ location });
    await expect(database.read.raw('SELECT 1')).rejects.toThrow('add sslmode=disable to GPD_DATABASE_URL');
    await database.close();
    refusing.close();
  });
});
