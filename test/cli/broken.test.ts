import { cpSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runGpd, tempDir } from '../support/command.ts';
import { initGpd, startGpd } from '../support/server.ts';

/** Broken set-ups: what doctor and serve say, and with which exit code. */

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly detail: string;
  readonly remedy?: string;
}

async function fails(env: Record<string, string>): Promise<readonly Shown[]> {
  const { stdout } = await runGpd(['doctor', '--json'], { env });
  return (JSON.parse(stdout) as { checks: Shown[] }).checks.filter(({ status }) => status === 'fail');
}

const serve = (env: Record<string, string>) => runGpd(['serve', '--port', '0'], { env });

it.each([
  ['a text file', (file: string) => writeFileSync(file, 'hello')],
  ['half a database', (file: string) => truncateSync(file, 150_000)],
])('%s: one finding, to restore a backup; serve ends with 78', async (_title, damage) => {
  const { dataDir } = await initGpd();
  damage(join(dataDir, 'gpd.db'));
  const env = { GPD_DATA_DIR: dataDir };
  const found = (await fails(env)).filter(({ id }) => id.startsWith('database.'));
  expect(found).toHaveLength(1);
  expect(found[0]?.remedy).toContain('restore');
  expect(JSON.stringify(await fails(env))).not.toMatch(/broke off|gpd init/);
  expect(await serve(env)).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd restore BACKUP') });
});

it('a PostgreSQL host that nobody knows is named, with 75', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir, GPD_DATABASE_URL: 'postgres://gpd:secret-word@nodb.invalid/gpd' };
  const { code, stderr } = await serve(env);
  expect({ code, stderr }).toEqual({ code: 75, stderr: expect.stringContaining('its host name is unknown') });
  expect(stderr).toContain('nodb.invalid');
  expect(stderr).not.toContain('secret-word');
});

it('a port that another program has is a finding of doctor', async () => {
  const { dataDir } = await initGpd();
  const other = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const found = await fails({ GPD_DATA_DIR: dataDir, GPD_PORT: String(port) });
  expect(found.find(({ id }) => id === 'server.health')?.detail).toContain('another program');
  other.close();
});

it('database and key of another installation beside the old checkpoints.log are called so', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: join(tempDir('data'), 'gpd-data') };
  await runGpd(['init', '--tenant', 'acme', '--origin', 'https://acme.example'], { env });
  for (const name of ['gpd.db', 'master.key']) cpSync(join(env.GPD_DATA_DIR, name), join(dataDir, name));
  const log = (await fails({ GPD_DATA_DIR: dataDir })).find(({ id }) => id === 'log.entries');
  expect(log?.detail).toContain("another installation's log");
  expect(log?.remedy).toContain('gpd consent verify acme');
  const gpd = await startGpd({ dataDir });
  expect(gpd.logs()).toMatch(/"checkpoints-broken".*another installation/);
  await gpd.stop();
});

it.each([
  ['zeros', Buffer.alloc(32)],
  ['a pattern', Buffer.from('abcd'.repeat(8))],
  ['a row', Buffer.from(Array.from({ length: 32 }, (_, i) => i + 1))],
])('a master key of %s is refused by init, serve and rewrap', async (_title, key) => {
  const newDir = tempDir('data');
  const file = join(tempDir('key'), 'key');
  for (const path of [join(newDir, 'master.key'), file])
    writeFileSync(path, key.toString('base64'), { mode: 0o600 });
  const refused = { code: 78, stderr: expect.stringContaining('is not random') };
  const init = ['init', '--tenant', 'acme', '--origin', 'https://acme.example'];
  expect(await runGpd(init, { env: { GPD_DATA_DIR: newDir } })).toMatchObject(refused);
  const { dataDir } = await initGpd();
  const rewrap = ['keys', 'rewrap', '--new-key-file', file, '--yes'];
  expect(await runGpd(rewrap, { env: { GPD_DATA_DIR: dataDir } })).toMatchObject(refused);
});
