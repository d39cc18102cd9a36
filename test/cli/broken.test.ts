import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createSocketServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runGpd, tempDir } from '../support/command.ts';
import { initGpd, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';

/** Broken set-ups: what doctor and serve say, and with which exit code. */

interface Shown {
  readonly id: string;
  readonly status: string;
  readonly detail: string;
  readonly remedy?: string;
}

async function findings(env: Record<string, string>): Promise<readonly Shown[]> {
  const { stdout } = await runGpd(['doctor', '--json'], { env });
  return (JSON.parse(stdout) as { checks: Shown[] }).checks;
}

async function fails(env: Record<string, string>): Promise<readonly Shown[]> {
  return (await findings(env)).filter(({ status }) => status === 'fail');
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

it.each([
  ['is silent', (_socket: Socket) => {}, 'does not answer'],
  ['speaks no HTTP', (socket: Socket) => void socket.end('220 mail.example ESMTP\r\n'), 'another program'],
  ['hangs up', (socket: Socket) => void socket.resetAndDestroy(), 'another program'],
])('a program at the port that %s is a finding of doctor', async (_title, speak, words) => {
  const { dataDir } = await initGpd();
  const sockets: Socket[] = [];
  const other = createSocketServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    speak(socket);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const found = await fails({ GPD_DATA_DIR: dataDir, GPD_PORT: String(port) });
  for (const socket of sockets) socket.destroy();
  other.close();
  expect(found.find(({ id }) => id === 'server.health')?.detail).toContain(words);
});

it('each remedy can be copied, and says once what is to do', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir, GPD_PORT: '9' };
  await runGpd(['tenants', 'add', 'beta', '--origin', 'https://beta.example'], { env });
  const all = await findings(env);
  expect(all.find(({ id }) => id === 'oidc.issuer')?.remedy).toBe(
    'If your site has accounts, set GPD_OIDC_ISSUER to the issuer of the tokens, and GPD_OIDC_AUDIENCE to the audience that they name.',
  );
  expect(all.find(({ id }) => id === 'apikeys.use')?.remedy).toBe(
    'Run gpd apikeys create acme --scope secret --name NAME. Then the same for beta.',
  );
  expect(all.filter(({ remedy }) => /\bKID\b/.test(remedy ?? ''))).toEqual([]);
});

it('a dotted claim is no path, and doctor says what to write for Keycloak', async () => {
  const { dataDir } = await initGpd();
  const claim = async (name: string) =>
    (
      await findings({
        GPD_DATA_DIR: dataDir,
        GPD_OIDC_ISSUER: 'https://idp.invalid',
        GPD_OIDC_AUDIENCE: 'gpd',
        GPD_OIDC_ROLE_CLAIM: name,
      })
    ).find(({ id, status }) => id === 'oidc.issuer' && status === 'warn');
  expect((await claim('realm_access.roles'))?.remedy).toContain('write /realm_access/roles:');
  expect(await claim('/realm_access/roles')).toBeUndefined();
  expect(await claim('https://shop.example/gpd_role')).toBeUndefined();
});

it('a predictable key before gpd init is replaced, because there is nothing to rewrap', async () => {
  const dataDir = tempDir('data');
  writeFileSync(join(dataDir, 'master.key'), Buffer.alloc(32).toString('base64'), { mode: 0o600 });
  const found = (await fails({ GPD_DATA_DIR: dataDir })).find(({ id }) => id === 'master-key.present');
  expect(found?.remedy).toContain(`${join(dataDir, 'master.key')}: openssl rand -base64 32`);
});

it('commands that read a file refuse a FIFO, which they would wait for', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir };
  const fifo = join(tempDir('fifo'), 'pipe');
  execFileSync('sh', ['-c', `mkfifo ${fifo}`]);
  for (const [words, code] of [
    [['restore', fifo, '--dry-run'], 1],
    [['consent', 'import', 'acme', fifo], 2],
    [['consent', 'verify', 'acme', '--against', fifo], 2],
    [
      ['dsar', 'export', '--tenant', 'acme', '--visitor', 'v', '--out', `${fifo}.zip`, '--encrypt-to', fifo],
      2,
    ],
    [['tenants', 'policy', 'acme', '--set', fifo], 2],
    [['keys', 'symmetric', 'acme', '--import', fifo], 2],
    [['keys', 'rewrap', '--yes', '--new-key-file', fifo], 78],
  ] as const) {
    const ran = await runGpd(words, { env });
    expect({ words, ...ran }).toMatchObject({
      words,
      code,
      stderr: expect.stringMatching(/not a regular file/),
    });
  }
});

const disk = tempDir('full');
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk], { encoding: 'utf8' });
const refused = mounted.status === 0 ? null : `a tmpfs cannot be mounted here: ${mounted.stderr ?? ''}`;

describeWithTool(
  'a disk that is full',
  refused,
  () => {
    afterAll(() => void spawnSync('umount', ['-l', disk]));
    it('is one remedy: to make room', async () => {
      const { dataDir } = await initGpd();
      cpSync(dataDir, join(disk, 'data'), { recursive: true });
      spawnSync('sh', ['-c', `cat /dev/zero > ${join(disk, 'filler')}`]);
      const env = { GPD_DATA_DIR: join(disk, 'data'), GPD_PORT: '9' };
      const found = (await fails(env)).find(({ id }) => id === 'database.reachable');
      expect(found?.detail).toContain('is full');
      expect(found?.remedy).toMatch(/^Make room/);
      expect(await serve(env)).toMatchObject({ code: 75, stderr: expect.stringContaining('make room') });
    });
  },
  { optional: true },
);
