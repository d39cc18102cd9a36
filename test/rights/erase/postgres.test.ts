import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gpdJson, tempDir } from '../../support/command.ts';
import { KID, ORIGIN, REASON } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { startIdp } from '../../support/oidc.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { startGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';
import { type Rights, rightsOf, type Visit } from '../support/rights.ts';

/** The rights on a real PostgreSQL: what it refuses that SQLite takes, and what an erasure leaves in its files. */

describeWithTool('rights on PostgreSQL', await missingPostgres(), () => {
  let postgres: PostgresServer;
  let client: pg.Client;
  let rights: Rights;
  beforeAll(async () => {
    postgres = await startPostgres();
    const url = await postgres.freshUrl();
    const dataDir = join(tempDir('rights-postgres'), 'gpd-data');
    const env = { GPD_DATABASE_URL: url, GPD_DATA_DIR: dataDir };
    const made = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID, '--origin', ORIGIN], { env });
    const target = { kid: KID, publicKey: Buffer.from(made.publicKey, 'base64') };
    const idp = await startIdp();
    const settings = { ...idp.settings, GPD_DATABASE_URL: url, GPD_RATE_PRIVACY: 'off' };
    rights = rightsOf(await startGpd({ dataDir, settings }), idp, [target, target]);
    client = new pg.Client({ connectionString: url });
    await client.connect();
  }, 120_000);
  afterAll(async () => {
    await client.end();
    await rights.stop();
    await postgres.stop();
  });

  const dpo = (): Promise<string> => rights.as({ gpd_role: 'dpo', sub: 'dora' });

  describe.each([
    ['NUL', 'a\\u0000b'],
    ['a lone surrogate', 'a\\ud800b'],
    ['a control character', 'a\\u001bb'],
  ])('an id with %s', (_what, id) => {
    it.each([
      ['/privacy/contest', `{"requestId":"${id}"}`, 'subject'],
      ['/privacy/contest/resolve', `{"contestId":"${id}","outcome":"upheld","reason":"${REASON}"}`, 'dpo'],
      ['/privacy/erase', `{"visitorId":"${id}"}`, 'subject'],
      ['/privacy/erase', `{"visitorId":"${id}"}`, 'dpo'],
      ['/privacy/erase', `{"requestId":"${id}"}`, 'dpo'],
      ['/privacy/erase', `{"durableId":"${KID}|${id}"}`, 'dpo'],
      ['/privacy/erase', `{"principalId":"${id}"}`, 'dpo'],
    ])('is refused by %s of %s as %s', async (path, body, role) => {
      const token = await rights.as({ gpd_role: role, sub: 'somebody', gpd_visitor: 'A'.repeat(22) });
      expectError(await rights.call(path, body, token), 'invalid-request');
    });
  });

  /** Files below the server's data directory in which ids stand, and how many of them. */
  async function found(below: string, visits: readonly Visit[]): Promise<number> {
    const [row] = (await client.query<{ data_directory: string }>('SHOW data_directory')).rows;
    const root = join(row?.data_directory ?? '', below);
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .map((name) => join(root, name))
      .filter((path) => statSync(path).isFile())
      .map((path) => readFileSync(path));
    return visits.filter(({ requestId }) => files.some((bytes) => bytes.includes(requestId))).length;
  }

  /** Closes the segments of the write-ahead log that are there and lets go of them. */
  async function recycle(): Promise<void> {
    for (let i = 0; i < 3; i += 1) await client.query('SELECT pg_switch_wal()').then(() => checkpoint());
  }
  const checkpoint = (): Promise<unknown> => client.query('CHECKPOINT');

  it('erases the rows at once; their bytes are gone once the tables are written anew and the log is recycled', async () => {
    const visits: Visit[] = [];
    for (let i = 0; i < 30; i += 1)
      visits.push(await rights.visit({ bot: true, device: String(i).padStart(32, 'a') }));
    await checkpoint();
    // The negative control: the same search finds them before.
    expect(await found('base', visits)).toBe(visits.length);
    expect(await found('pg_wal', visits)).toBe(visits.length);
    const erased = visits.slice(5, 25);
    const token = await dpo();
    for (const { visitorId } of erased) {
      const reply = await rights.call('/privacy/erase', { visitorId }, token);
      expect(reply.json()).toMatchObject({ incomplete: false });
    }
    const ids = erased.map(({ requestId }) => requestId);
    const left = await client.query('SELECT 1 FROM decisions WHERE request_id = ANY($1)', [ids]);
    expect(left.rowCount).toBe(0);
    // What docs/rights.md says of the rest: VACUUM gives the room back and does not overwrite it.
    await client.query('VACUUM');
    await checkpoint();
    expect(await found('base', erased)).toBeGreaterThan(0);
    await client.query('VACUUM FULL');
    await checkpoint();
    expect(await found('base', erased)).toBe(0);
    await recycle();
    expect(await found('pg_wal', erased)).toBe(0);
    expect(await found('base', visits)).toBe(visits.length - erased.length);
  }, 60_000);
});
