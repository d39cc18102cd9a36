import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../../src/db/engine.ts';
import { scrubFiles } from '../../../src/rights/erase/scrub-store.ts';
import type { ErasureReceipt } from '../../../src/schema/rights.ts';
import { KID, REASON } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { describeWithTool } from '../../support/tools.ts';
import { type Rights, startRightsOn, type Visit } from '../support/rights.ts';

/** The rights on a real PostgreSQL: what it refuses that SQLite takes, and what an erasure leaves in its files. */

describeWithTool('rights on PostgreSQL', await missingPostgres(), () => {
  let postgres: PostgresServer;
  let url: string;
  let client: pg.Client;
  let rights: Rights;
  beforeAll(async () => {
    postgres = await startPostgres();
    url = await postgres.freshUrl();
    rights = await startRightsOn(url);
    client = new pg.Client({ connectionString: url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await rights.stop();
    await postgres.stop();
  });

  const dpo = (): Promise<string> => rights.as({ gpd_role: 'dpo', sub: 'dora' });

  it.each([
    ['/privacy/contest', 'subject', (id: string) => `{"requestId":"${id}"}`],
    [
      '/privacy/contest/resolve',
      'dpo',
      (id: string) => `{"contestId":"${id}","outcome":"upheld","reason":"${REASON}"}`,
    ],
    ['/privacy/erase', 'subject', (id: string) => `{"visitorId":"${id}"}`],
    ['/privacy/erase', 'dpo', (id: string) => `{"visitorId":"${id}"}`],
    ['/privacy/erase', 'dpo', (id: string) => `{"requestId":"${id}"}`],
    ['/privacy/erase', 'dpo', (id: string) => `{"durableId":"${KID}|${id}"}`],
    ['/privacy/erase', 'dpo', (id: string) => `{"principalId":"${id}"}`],
  ])('%s of a %s refuses an id that PostgreSQL cannot store', async (path, role, bodyOf) => {
    const token = await rights.as({ gpd_role: role, sub: 'somebody', gpd_visitor: 'A'.repeat(22) });
    for (const id of ['a\\u0000b', 'a\\ud800b', 'a\\u001bb'])
      expectError(await rights.call(path, bodyOf(id), token), 'invalid-request');
  });

  /** @returns the number of these ids in files below the server's data directory, without the write-ahead log */
  async function found(ids: readonly string[]): Promise<number> {
    const [row] = (await client.query<{ data_directory: string }>('SHOW data_directory')).rows;
    const root = join(row?.data_directory ?? '', 'base');
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .map((name) => join(root, name))
      .filter((path) => statSync(path).isFile())
      .map((path) => readFileSync(path));
    return ids.filter((id) => files.some((bytes) => bytes.includes(id))).length;
  }

  const checkpoint = (): Promise<unknown> => client.query('CHECKPOINT');

  const idsOf = (visits: readonly Visit[]): string[] => visits.map(({ requestId }) => requestId);

  it('erases the rows at once; gpd erase scrub takes their bytes out of tables and indexes', async () => {
    const visits: Visit[] = [];
    for (let i = 0; i < 30; i += 1)
      visits.push(await rights.visit({ bot: true, device: String(i).padStart(32, 'a') }));
    const erased = visits.slice(5, 25);
    const ids = idsOf(erased);
    const devices = await client.query<{ durable: string }>(
      'SELECT durable FROM decisions WHERE request_id = ANY($1)',
      [ids],
    );
    const durables = devices.rows.map(({ durable }) => durable);
    await checkpoint();
    // The negative control: the same search finds them before.
    expect(await found([...idsOf(visits), ...durables])).toBe(visits.length + durables.length);
    const token = await dpo();
    for (const { visitorId } of erased) {
      const reply = await rights.call('/privacy/erase', { visitorId }, token);
      const receipt = reply.json() as ErasureReceipt;
      expect(receipt.incomplete).toBe(true);
      expect(receipt.scopes.filter(({ action }) => action === 'pending')).toEqual([
        { scope: 'storage', action: 'pending', count: 1 },
      ]);
    }
    const remainingRows = await client.query('SELECT 1 FROM decisions WHERE request_id = ANY($1)', [ids]);
    expect(remainingRows.rowCount).toBe(0);
    // VACUUM frees the space and does not overwrite it (docs/rights.md).
    await client.query('VACUUM decisions');
    await checkpoint();
    expect(await found(ids)).toBeGreaterThan(0);
    expect(await found(durables)).toBeGreaterThan(0);

    const { gpd } = rights;
    const { receiptId } = (
      await rights.call('/privacy/erase', { visitorId: visits[0]?.visitorId }, token)
    ).json() as ErasureReceipt;
    const shown = await gpd.cli(['erase', 'status', receiptId]);
    expect(shown.code).toBe(5);
    expect(shown.stdout).toContain('until `gpd erase scrub` has run');
    // It waits for nothing that a resume could do.
    const nothing = { code: 0, stdout: 'no erasure is left to finish\n' };
    expect(await gpd.cli(['erase', 'resume'])).toMatchObject(nothing);
    expect(JSON.parse((await gpd.cli(['erase', 'scrub', KID, '--json'])).stdout)).toEqual({ scrubbed: 21 });
    await checkpoint();
    expect(await found([...ids, ...durables])).toBe(0);
    const listed = await gpd.cli(['erase', 'list', KID, '--json']);
    const receipts = JSON.parse(listed.stdout) as ErasureReceipt[];
    expect(receipts.map(({ incomplete }) => incomplete)).toEqual(receipts.map(() => false));
    expect(receipts[0]?.scopes.at(-1)).toEqual({ scope: 'storage', action: 'erased', count: 1 });
    expect((await gpd.cli(['erase', 'scrub'])).stdout).toBe('no receipt waits for it\n');
    expect(await found(idsOf(visits))).toBe(visits.length - erased.length - 1);
  });

  it('does not scrub while somebody may still read what was erased', async () => {
    const { visitorId, requestId } = await rights.visit({ bot: true, device: 'b'.repeat(32) });
    const reader = new pg.Client({ connectionString: url });
    await reader.connect();
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM tenants');
    await rights.call('/privacy/erase', { visitorId }, await dpo());
    const owner = await openDatabase({ location: url });
    const [{ pid }] = (await reader.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows as [
      { pid: number },
    ];
    await expect(scrubFiles(owner, 0)).rejects.toThrow(`process ${pid} of PostgreSQL may still read`);
    await reader.end();
    await scrubFiles(owner);
    await owner.close();
    expect(await found([requestId])).toBe(0);
  });
});
