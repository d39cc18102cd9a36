import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/db/engine.ts';
import { migrate } from '../../src/db/migrate.ts';
import { gpdJson, PROGRAM, type Ran, runGpd, spawnTool, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { dumpDatabase } from '../support/database.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { initGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { ownOf } from './support/own.ts';

const init = (dataDir: string, ...flags: string[]): Promise<Ran> =>
  runGpd(['init', '--tenant', KID, ...flags], { env: { GPD_DATA_DIR: dataDir } });
const freshDir = (): string => join(tempDir('data'), 'gpd-data');
const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

/** Expects one sentence, as 78, with each of the words. */
function expectBadConfig(ran: Ran, ...words: readonly (string | RegExp)[]): void {
  expect(ran).toMatchObject({ code: 78, stdout: '' });
  expect(ran.stderr.trim().split('\n')).toHaveLength(1);
  for (const word of words) expect(ran.stderr).toMatch(word);
}

describe.concurrent('gpd init', () => {
  it('makes a data directory, a master key, a database and the first tenant', async () => {
    const dataDir = join(tempDir('data'), 'deep', 'down');
    const ran = await init(dataDir, '--origin', ORIGIN, '--origin', 'https://two.example/', '--json');
    const created = JSON.parse(ran.stdout) as Record<string, unknown>;
    const origins = [ORIGIN, 'https://two.example'];
    expect(created).toMatchObject({ kid: KID, origins, generation: 1, dataDir });
    expect(Buffer.from(String(created['publicKey']), 'base64')).toHaveLength(65);
    expect(mode(dataDir)).toBe('700');
    expect(mode(join(dataDir, 'master.key'))).toBe('600');
    expect(Buffer.from(readFileSync(join(dataDir, 'master.key'), 'utf8'), 'base64')).toHaveLength(32);
    const { purposes, seal_keys: keys } = await dumpDatabase(dataDir);
    expect(purposes?.map((row) => JSON.parse(row) as object)).toMatchObject([
      { kid: KID, id: 'device-identification', gpc: 'opt-out' },
    ]);
    expect(keys?.map((row) => JSON.parse(row) as object)).toMatchObject([
      { generation: 1, state: 'published' },
    ]);
  });

  it('warns of what is missing and hard to change later, on stderr and without a question', async () => {
    const missing = (await init(join(tempDir('data'), 'a'))).stderr;
    expect(missing).toMatch(/warning: base_url is not set.* 127\.0\.0\.1:8080\/ledger\/acme/);
    expect(missing).toMatch(/warning: acme has no origin.*origins=https/);
    expect(missing).toMatch(/warning: .*responsible.*notice\.controller.*notice\.contact/);
    const notice = ['--controller', 'Acme Ltd, Dublin', '--contact', 'privacy@acme.example'];
    const env = { GPD_DATA_DIR: join(tempDir('data'), 'b'), GPD_BASE_URL: 'https://id.acme.example' };
    const ran = await runGpd(['init', '--tenant', KID, '--origin', ORIGIN, ...notice], { env });
    expect(ran).toMatchObject({ code: 0, stderr: '' });
    const [{ settings } = { settings: {} }] = await gpdJson<{ settings: object }[]>(['tenants', 'list'], {
      env,
    });
    expect(settings).toMatchObject({ 'notice.controller': 'Acme Ltd, Dublin', 'notice.contact': notice[3] });
  });

  it('refuses to overwrite: 7, and nothing is changed', async () => {
    const { dataDir } = await initGpd();
    const before = await dumpDatabase(dataDir);
    const key = readFileSync(join(dataDir, 'master.key'), 'utf8');
    const ran = await init(dataDir);
    expect(ran).toMatchObject({ code: 7, stdout: '' });
    expect(ran.stderr).toMatch(/already/);
    expect(await dumpDatabase(dataDir)).toEqual(before);
    expect(readFileSync(join(dataDir, 'master.key'), 'utf8')).toBe(key);
  });

  it('goes on where it was interrupted: before the schema, and before the secret', async () => {
    for (const leave of [
      (file: string) => Promise.resolve(writeFileSync(file, '')),
      async (file: string) => {
        const database = await openDatabase({ location: file, create: true });
        await migrate(database);
        await database.close();
      },
    ]) {
      const dataDir = tempDir('data');
      await leave(join(dataDir, 'gpd.db'));
      expect((await init(dataDir)).code).toBe(0);
      expect((await init(dataDir)).code).toBe(7);
    }
  });

  it('lets the database of another program be: 7, and no byte of it is changed', async () => {
    const dataDir = tempDir('data');
    const file = join(dataDir, 'gpd.db');
    const theirs = await openDatabase({ location: file, create: true });
    await theirs.transaction((tx) => tx.raw('CREATE TABLE theirs (id text)'));
    await theirs.read.raw('SELECT 1');
    await theirs.close();
    expect((await init(dataDir)).code).toBe(7);
    const bytes = Buffer.from('SQLite format 3\0 but of another mode');
    writeFileSync(file, bytes);
    expect((await init(dataDir)).code).toBe(7);
    expect(readFileSync(file)).toEqual(bytes);
  });

  it('of two at once one makes it', async () => {
    const dataDir = tempDir('data');
    const codes = (await Promise.all([init(dataDir), init(dataDir)])).map(({ code }) => code);
    expect(codes).toContain(0);
    expect((await runGpd(['tenants', 'list', '--json'], { env: { GPD_DATA_DIR: dataDir } })).code).toBe(0);
  });

  it('changes no file that is there already, a master key without its database least of all', async () => {
    for (const name of ['notes.txt', 'master.key']) {
      const dataDir = tempDir('data');
      const text = Buffer.alloc(32, 9).toString('base64');
      writeFileSync(join(dataDir, name), text, { mode: 0o600 });
      const { code } = await init(dataDir);
      if (name === 'notes.txt') expect(code).toBe(0);
      expect(readFileSync(join(dataDir, name), 'utf8')).toBe(text);
    }
  });

  it('the database is nobody else’s to read, even in a directory that others may enter', async () => {
    const dataDir = tempDir('data');
    chmodSync(dataDir, 0o755);
    expect((await init(dataDir)).code).toBe(0);
    const open = [dataDir, ...readdirSync(dataDir).map((name) => join(dataDir, name))].map(mode);
    const shut = mode(dataDir) === '700' || open.slice(1).every((bits) => bits === '600');
    expect(shut, `modes ${open.join(' ')}`).toBe(true);
  });

  it.each([
    [['--tenant', 'a|b']],
    [['--tenant', KID, '--origin', 'https://shop.example/path']],
    [['--origin', ORIGIN]],
  ])('2 and nothing made for init %j', async (args) => {
    const dataDir = freshDir();
    const ran = await runGpd(['init', ...args], { env: { GPD_DATA_DIR: dataDir } });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).not.toBe('');
    expect(existsSync(dataDir)).toBe(false);
  });

  it('makes nothing while its PostgreSQL is away: 75', async () => {
    const dataDir = freshDir();
    const env = { GPD_DATA_DIR: dataDir, GPD_DATABASE_URL: 'postgres://127.0.0.1:1/gpd' };
    expect((await runGpd(['init', '--tenant', KID], { env })).code).toBe(75);
    expect(existsSync(dataDir)).toBe(false);
  });

  it('78 in one sentence in a working directory that somebody removed', async () => {
    const script = 'rmdir "$PWD"; exec "$0" "$@"';
    const args = ['-c', script, process.execPath, PROGRAM, 'init', '--tenant', KID];
    const { output, exited } = spawnTool('sh', args, { cwd: tempDir('cwd') });
    expectBadConfig({ ...(await exited), ...output }, /^gpd: the working directory .*GPD_DATA_DIR/);
  });

  it('78 in one sentence that names directory and setting, where there can be no directory or database', async () => {
    const parent = tempDir('data');
    writeFileSync(join(parent, 'file'), '');
    // procfs reports an existing parent as missing, so Node's recursive mkdir would loop for ever.
    for (const dataDir of [join(parent, 'file'), join(parent, 'file', 'gpd-data'), '/proc/gpd/data'])
      expectBadConfig(await init(dataDir), dataDir, 'GPD_DATA_DIR');
    expectBadConfig(await init('/proc'), /^gpd: cannot write to \/proc \(E\w+\)/);
    const odd = tempDir('data');
    mkdirSync(join(odd, 'gpd.db'));
    expectBadConfig(await init(odd), /gpd\.db is not a file/);
    expect(readdirSync(odd)).toEqual(['gpd.db']);
  });
});

describe.concurrent('a data directory without a gpd', () => {
  it.each(['serve --port 0', 'tenants list', 'keys rewrap --yes', 'migrate'])(
    'is refused by %s with 78 and "run gpd init", and nothing is made',
    async (line) => {
      const dataDir = tempDir('data');
      for (const missing of [dataDir, join(dataDir, 'none')])
        expectBadConfig(await ownOf(missing).gpd(line), /run `?gpd init\b/);
      expect(readdirSync(dataDir)).toEqual([]);
    },
  );

  it('is one that has an empty database file', async () => {
    const dataDir = tempDir('data');
    writeFileSync(join(dataDir, 'gpd.db'), '');
    expectBadConfig(await ownOf(dataDir).gpd('serve --port 0'), /run `?gpd init\b/);
  });

  it('./gpd-data is where it lies by default, and STATE_DIRECTORY under systemd', async () => {
    const cwd = tempDir('cwd');
    const state = tempDir('state');
    mkdirSync(join(state, 'gpd'));
    await gpdJson(['init', '--tenant', KID], { cwd });
    expect(existsSync(join(cwd, 'gpd-data', 'gpd.db'))).toBe(true);
    await gpdJson(['init', '--tenant', KID], { env: { STATE_DIRECTORY: join(state, 'gpd') } });
    expect(existsSync(join(state, 'gpd', 'gpd.db'))).toBe(true);
  });
});

describeWithTool('gpd init on PostgreSQL', await missingPostgres(), () => {
  it('refuses a database that has a gpd, and makes no other key for it', async () => {
    const GPD_DATABASE_URL = await sharedPostgres().freshUrl();
    const first = { GPD_DATA_DIR: freshDir(), GPD_DATABASE_URL };
    const other = { GPD_DATA_DIR: freshDir(), GPD_DATABASE_URL };
    expect(await runGpd(['init', '--tenant', KID], { env: first })).toMatchObject({ code: 0 });
    expect(await runGpd(['init', '--tenant', KID], { env: other })).toMatchObject({ code: 7 });
    expect(existsSync(other.GPD_DATA_DIR)).toBe(false);
  });
});
