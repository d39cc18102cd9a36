import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { dumpDatabase } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';
import { createOwn, ownOf } from './support/own.ts';

/** Tables that a backup or a restore itself writes to. */
const IN_USE = ['meta', 'revisions', 'audit_log', 'sqlite_sequence'];
const DATA_FILES = ['checkpoints.log', 'checkpoints.log.lock', 'gpd.db', 'gpd.lock', 'master.key'];
const target = (): string => join(tempDir('backups'), 'b');

/** Every file of a directory, by name, in hexadecimal. */
const filesOf = (directory: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name)).toString('hex')]),
  );

describe.concurrent('gpd backup', () => {
  it('copies what a running server acknowledged, and a restore gives it back', async () => {
    const gpd = await startGpd();
    const [to] = gpd.targets;
    const file = target();
    const bundle = createBundle(to!);
    expectCore(await post(gpd.url, bundle), 'ok');
    const load = { on: true };
    const loading = (async () => {
      while (load.on) await post(gpd.url, createBundle(to!));
    })();
    const backup = await gpd.json<{ bytes: number; databaseBytes: number }>(['backup', file]);
    load.on = false;
    await loading;
    expect(backup).toMatchObject({ file, gpd: '0.1.0', erasures: 0, verified: true });
    expect(backup.bytes).toBe(statSync(file).size);
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
    await gpd.stop();

    const env = { GPD_DATA_DIR: join(tempDir('data'), 'gpd-data') };
    await gpdJson(['restore', file, '--key-file', join(gpd.dataDir, 'master.key')], { env });
    const again = await startGpd({ dataDir: env.GPD_DATA_DIR });
    // The nonce of this bundle was claimed before the backup.
    expectCore(await post(again.url, bundle), 'replay');
    expectCore(await post(again.url, createBundle(to!)), 'ok');
    await again.stop();
  });

  it('every row of every table comes back, nothing is left beside them, and nothing is in the clear', async () => {
    const { dataDir, gpd, json, query } = await createOwn();
    await json('tenants add other --origin https://other.example');
    await query(`INSERT INTO sightings VALUES ('${KID}', 'a-durable-id-to-look-for', 1, 2, 3)`);
    const before = await dumpDatabase(dataDir, IN_USE);
    const file = target();
    const backup = await json<{ createdAt: string }>('backup', file);
    const bytes = readFileSync(file).toString('latin1');
    expect(bytes.startsWith('gpd-backup/1\n')).toBe(true);
    for (const word of ['a-durable-id-to-look-for', KID, 'SQLite format', 'CREATE TABLE'])
      expect({ word, found: bytes.includes(word) }).toEqual({ word, found: false });
    await query('DELETE FROM sightings');
    await json('tenants add third');
    const refused = await gpd('restore', file);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('--yes');
    await json(`restore ${file} --yes`);
    expect(readdirSync(dataDir).sort()).toEqual(DATA_FILES);
    const { stdout } = await gpd('status --json');
    expect(JSON.parse(stdout)).toMatchObject({ database: { lastBackupAt: backup.createdAt } });
    expect(await dumpDatabase(dataDir, IN_USE)).toEqual(before);
  });

  it('in a directory names the file, and --keep deletes the oldest that it named, but never a new one', async () => {
    const { json, gpd } = await createOwn();
    const folder = tempDir('backups');
    const nameOf = (stamp: string): string => `gpd-${stamp}-031700.backup`;
    // The clock has been ahead once.
    const older = ['2026-01-01', '2026-01-02', '2099-01-01'].map(nameOf);
    const otherFiles = ['gpd-2020-01-01-before-upgrade.backup', 'gpd-2020-01-01-031700.backup.part', 'mine'];
    const first = target();
    await json('backup', first);
    for (const name of [...older, ...otherFiles]) cpSync(first, join(folder, name));
    const { file } = await json<{ file: string }>('backup', folder);
    expect(basename(file)).toMatch(/^gpd-\d{4}-\d\d-\d\d-\d{6}\.backup$/);
    expect(readdirSync(folder)).toHaveLength(7);
    renameSync(file, join(folder, nameOf('2026-01-03')));
    const newBackup = await json<{ file: string; deleted: string[] }>(`backup ${folder} --keep 3`);
    expect(newBackup.deleted).toEqual(older.slice(0, 2).map((name) => join(folder, name)));
    const keptBackups = [basename(newBackup.file), ...['2026-01-03', '2099-01-01'].map(nameOf)];
    for (const line of [`${join(folder, 'b')} --keep 3`, `${folder} --keep 0`, `${folder} --keep x`])
      expect(await gpd(`backup ${line}`)).toMatchObject({ code: 2, stdout: '' });
    expect(readdirSync(folder).sort()).toEqual([...keptBackups, ...otherFiles].sort());
  });

  it('--keep counts and deletes no file of another installation, and says how many it found', async () => {
    const b = await createOwn();
    const env = { GPD_DATA_DIR: join(tempDir('data'), 'gpd-data') };
    await gpdJson(['init', '--tenant', 'other', '--origin', 'https://other.example'], { env });
    const folder = tempDir('backups');
    const theirs = ['gpd-2026-01-01-000000.backup', 'gpd-9999-12-31-000000.backup'];
    const first = await gpdJson<{ file: string }>(['backup', join(folder, theirs[0] ?? '')], { env });
    writeFileSync(join(folder, theirs[1] ?? ''), 'a file that only has the name');
    const ours = ['gpd-2026-02-01-000000.backup', 'gpd-2026-02-02-000000.backup'];
    for (const name of ours) await b.json('backup', join(folder, name));
    const result = await b.gpd(`backup ${folder} --keep 2`);
    expect(result).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/kept +2 files that do not open/),
    });
    const files = readdirSync(folder);
    expect(files).toHaveLength(4);
    expect(files).toEqual(expect.arrayContaining([...theirs, ours[1]]));
    await gpdJson(['restore', first.file, '--dry-run'], { env });
  });

  it('a restore refuses a FIFO, a directory and a link without its file by name', async () => {
    const { gpd, json } = await createOwn();
    const file = target();
    await json('backup', file);
    const fifo = `${file}.fifo`;
    execFileSync('sh', ['-c', `mkfifo ${fifo}`]);
    for (const path of [fifo, tempDir('folder'), '/dev/null'])
      expect(await gpd('restore', path, '--dry-run')).toMatchObject({
        code: 1,
        stderr: `gpd: ${path}: not a regular file\n`,
      });
    const dataDir = tempDir('data');
    symlinkSync(join(dataDir, 'victim'), join(dataDir, 'master.key'));
    const ran = await runGpd(['restore', file, '--key-file', `${file}.no`, '--yes'], {
      env: { GPD_DATA_DIR: dataDir },
    });
    expect(ran).toMatchObject({ code: 78, stderr: expect.stringContaining('master.key is a symbolic link') });
    expect(readdirSync(dataDir)).toEqual(['master.key']);
  });

  it('overwrites nothing, and one that fails is told to the webhooks that asked for it', async () => {
    const { gpd, json, query } = await createOwn();
    await json(`webhooks add ${KID} https://hooks.example/ --event backup.failed`);
    const file = target();
    writeFileSync(file, 'mine');
    expect(await gpd('backup', file)).toMatchObject({ code: 7, stdout: '' });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(await query('SELECT event, kid, request_id, principal FROM webhook_outbox')).toEqual([
      { event: 'backup.failed', kid: KID, request_id: null, principal: null },
    ]);
  });

  it('clears away the copy in the clear that a killed one left', async () => {
    const { dataDir, json } = await createOwn();
    // No process can have this number: pid_max is at most 2^22.
    const copy = join(dataDir, 'staging-4999999-gpd.db');
    writeFileSync(copy, 'rows of people');
    await json('backup', target());
    expect(existsSync(copy)).toBe(false);
    writeFileSync(copy, 'rows of people');
    const gpd = await startGpd({ dataDir });
    expect(existsSync(copy)).toBe(false);
    await gpd.stop();
  });

  it('a damaged database gives no backup that would take a good one’s place', async () => {
    const { dataDir, gpd } = await createOwn();
    const path = join(dataDir, 'gpd.db');
    const bytes = readFileSync(path);
    // Overwrites the second half of the file, but not the schema.
    bytes.fill(0xa5, Math.floor(bytes.length / 2));
    writeFileSync(path, bytes);
    const file = target();
    const ran = await gpd('backup', file);
    expect(ran.code).toBe(1);
    expect(existsSync(file)).toBe(false);
  });

  it('asks for a directory that is there', async () => {
    const { gpd, dataDir } = await createOwn();
    const failed = await gpd('backup', join(tempDir('backups'), 'below', 'b'));
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(/no such directory/);
    expect(readdirSync(dataDir).sort()).toEqual(DATA_FILES);
  });
});

describe.concurrent('gpd restore', () => {
  it('beside a running server is refused, but for --dry-run, which verifies and changes nothing', async () => {
    const gpd = await startGpd();
    const file = target();
    await gpd.json(['backup', file]);
    const before = await dumpDatabase(gpd.dataDir, IN_USE);
    const report = await gpd.json(['restore', file, '--dry-run']);
    expect(report).toMatchObject({ dryRun: true, erasuresToRepeat: 0, rewrapped: false });
    const elsewhere = { GPD_DATA_DIR: join(tempDir('data'), 'none') };
    const keyFile = join(gpd.dataDir, 'master.key');
    await gpdJson(['restore', file, '--dry-run', '--key-file', keyFile], { env: elsewhere });
    expect(existsSync(elsewhere.GPD_DATA_DIR)).toBe(false);
    const ran = await gpd.cli(['restore', file, '--yes']);
    expect(ran).toMatchObject({ code: 7, stdout: '' });
    expect(ran.stderr).toMatch(/in use: stop the server/);
    expect(await dumpDatabase(gpd.dataDir, IN_USE)).toEqual(before);
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    await gpd.stop();
    expect((await gpd.cli(['restore', file, '--yes'])).code).toBe(0);
  });

  it.each([
    ['damaged', (bytes: Buffer) => bytes.fill(0, 100_000, 100_010)],
    ['cut off', (bytes: Buffer) => bytes.subarray(0, -1)],
    ['not a backup', () => Buffer.from('SQLite format 3')],
  ])('a file that is %s changes nothing', async (_name, change) => {
    const { dataDir, gpd, json } = await createOwn();
    const file = target();
    await json('backup', file);
    await json('tenants', 'list');
    writeFileSync(file, change(readFileSync(file)));
    const before = filesOf(dataDir);
    const ran = await gpd('restore', file, '--yes');
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toMatch(/damaged|not a backup/);
    expect({ ...filesOf(dataDir), 'gpd.db': '' }).toEqual({ ...before, 'gpd.db': '' });
    await json('tenants', 'list');
  });

  it('puts a backup in place of a database that nothing can read', async () => {
    const { dataDir, json } = await createOwn();
    const file = target();
    const before = await dumpDatabase(dataDir, IN_USE);
    await json('backup', file);
    for (const name of ['gpd.db', 'gpd.db-wal', 'gpd.db-shm'])
      writeFileSync(join(dataDir, name), randomBytes(9000));
    await json('restore', file, '--yes');
    expect(await dumpDatabase(dataDir, IN_USE)).toEqual(before);
  });

  it('needs the backup’s own master key, and wraps the data with the directory’s', async () => {
    const { dataDir, gpd, json } = await createOwn();
    const [old, key] = [join(tempDir('keys'), 'old'), join(dataDir, 'master.key')];
    const file = target();
    await json('backup', file);
    cpSync(key, old);
    await json('keys rewrap --yes');
    const refused = await gpd(`restore ${file} --yes`);
    expect(refused).toMatchObject({ code: 78, stdout: '' });
    expect(refused.stderr).toContain('--key-file');
    const mine = readFileSync(key, 'utf8');
    expect(await json(`restore ${file} --yes --key-file ${old}`)).toMatchObject({ rewrapped: true });
    expect(readFileSync(key, 'utf8')).toBe(mine);
    await (await startGpd({ dataDir })).stop();
    const empty = await ownOf(join(tempDir('x'), 'd')).gpd('restore', file);
    expect(empty.code).toBe(78);
    expect(empty.stderr).toMatch(/master key .* is missing/);
  });

  it('replaces what a newer gpd wrote, which no backup takes; a file that is not there is 3', async () => {
    const { gpd, json, query } = await createOwn();
    const file = target();
    await json('backup', file);
    expect((await gpd('restore', `${file}.none`)).code).toBe(3);
    await query("INSERT INTO knex_migrations (name, batch) VALUES ('29991231_01_later.js', 99)");
    expect((await gpd('backup', target())).stderr).toMatch(/newer gpd/);
    expect(await json(`restore ${file} --yes`)).toMatchObject({ dryRun: false });
  });
});
