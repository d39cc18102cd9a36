import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { gpdJson, type Ran, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { initGpd, type SealTarget, startGpd } from '../support/server.ts';
import { type Own, ownOf } from './support/own.ts';

interface Installation extends Own {
  /** The file of the master key, and that of the next one while it is not in use yet. */
  readonly key: string;
  readonly pending: string;
}

let original: string;
let targets: readonly SealTarget[];
beforeAll(async () => {
  const tenants = [KID, 'other'].map((kid) => ({ kid, origins: [] }));
  ({ dataDir: original, targets } = await initGpd(tenants));
  const { json } = ownOf(original);
  await json(`keys symmetric ${KID}`);
  await json(`keys rotate ${KID}`);
});

/** Copies the installation with its first master key. */
function install(): Installation {
  const dataDir = tempDir('data');
  cpSync(original, dataDir, { recursive: true });
  const key = join(dataDir, 'master.key');
  return { ...ownOf(dataDir), key, pending: `${key}.new` };
}

const read = (path: string): string => readFileSync(path, 'utf8');
const createKey = (): string => randomBytes(32).toString('base64');
const freshDir = (): string => join(tempDir('data'), 'gpd-data');

/** Expects that the installation starts, and that bundles of both tenants can be decrypted. */
async function expectWorking({ dataDir }: Installation): Promise<void> {
  const gpd = await startGpd({ dataDir });
  for (const target of targets) expectCore(await post(gpd.url, createBundle(target)), 'ok');
  await gpd.stop();
}

function expectRefused(ran: Ran): void {
  expect(ran).toMatchObject({ code: 78, stdout: '' });
  expect(ran.stderr).toMatch(/^gpd: .*master key/);
  expect(ran.stderr.trim().split('\n')).toHaveLength(1);
}

describe.concurrent('the master key', () => {
  it('missing: a refusal to start in a plain sentence, never a new key', async () => {
    const { dataDir, gpd, key } = install();
    rmSync(key);
    for (const line of ['serve --port 0', `keys rotate ${KID}`, 'tenants add x'])
      expectRefused(await gpd(line));
    expect(readdirSync(dataDir).filter((name) => name.startsWith('master'))).toEqual([]);
  });

  it.each([
    ['wrong', createKey()],
    ['empty', ''],
    ['too long', randomBytes(33).toString('base64')],
    ['hex', randomBytes(32).toString('hex')],
  ])('%s: the same, and the file stays as it is', async (_name, content) => {
    const { gpd, key } = install();
    writeFileSync(key, content);
    const ran = await gpd('serve --port 0');
    expectRefused(ran);
    expect(content !== '' && ran.stderr.includes(content)).toBe(false);
    expect(read(key)).toBe(content);
  });

  it.each([
    ['GPD_MASTER_KEY_FILE', 'mine', Buffer.from(`${createKey()}\n`)],
    ['CREDENTIALS_DIRECTORY', 'master-key', randomBytes(32)],
  ])('comes from %s, and then none is made in the data directory', async (name, file, content) => {
    const directory = tempDir('key');
    writeFileSync(join(directory, file), content);
    const dataDir = freshDir();
    const settings = { [name]: name === 'CREDENTIALS_DIRECTORY' ? directory : join(directory, file) };
    const env = { GPD_DATA_DIR: dataDir, ...settings };
    const { publicKey } = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID], { env });
    expect(existsSync(join(dataDir, 'master.key'))).toBe(false);
    const gpd = await startGpd({ dataDir, settings });
    const target = { kid: KID, publicKey: Buffer.from(publicKey, 'base64') };
    expectCore(await post(gpd.url, createBundle(target)), 'ok');
    await gpd.stop();
    expectRefused(await ownOf(dataDir).gpd('serve --port 0'));
  });

  it('GPD_MASTER_KEY_FILE that is not there: a refusal, by init too', async () => {
    const env = { GPD_DATA_DIR: freshDir(), GPD_MASTER_KEY_FILE: join(tempDir('key'), 'none') };
    expectRefused(await runGpd(['init', '--tenant', KID], { env }));
    expect(existsSync(env.GPD_MASTER_KEY_FILE)).toBe(false);
    expect(existsSync(join(env.GPD_DATA_DIR, 'gpd.db'))).toBe(false);
  });

  it('is never printed', async () => {
    const { gpd, key } = install();
    const first = read(key).trim();
    for (const line of ['tenants list', 'keys list', 'keys rewrap --dry-run', 'keys rewrap --yes']) {
      const ran = await gpd(`${line} --json`);
      expect(ran.code).toBe(0);
      for (const secret of [first, read(key).trim()]) expect(ran.stdout + ran.stderr).not.toContain(secret);
    }
  });
});

describe.concurrent('gpd keys rewrap', () => {
  it('wraps everything with a new master key, and the old one opens nothing any more', async () => {
    const mine = install();
    const old = read(mine.key);
    const before = await mine.dump();
    // The secrets of the tenants, and the server secret.
    const secrets = (before['tenant_secrets'] ?? []).length + 1;
    expect(secrets).toBeGreaterThanOrEqual(4);
    const report = { secrets, sealKeys: 3, masterKey: mine.key };
    expect(await mine.json('keys rewrap --dry-run')).toEqual({ ...report, dryRun: true });
    expect(await mine.gpd('keys rewrap')).toMatchObject({ code: 2, stdout: '' });
    expect([await mine.dump(), read(mine.key)]).toEqual([before, old]);

    expect(await mine.json('keys rewrap --yes')).toEqual({ ...report, dryRun: false });
    expect(read(mine.key)).not.toBe(old);
    expect((statSync(mine.key).mode & 0o777).toString(8)).toBe('600');
    expect(existsSync(mine.pending)).toBe(false);
    const after = await mine.dump();
    for (const table of ['tenant_secrets', 'seal_keys']) {
      const unchangedRows = (after[table] ?? []).filter((row) => before[table]?.includes(row));
      expect({ table, kept: unchangedRows }).toEqual({ table, kept: [] });
    }
    expect(after['meta']).not.toEqual(before['meta']);
    await expectWorking(mine);
    writeFileSync(mine.key, old);
    expectRefused(await mine.gpd('serve --port 0'));
  });

  it.each(['the next start', 'any command'])('killed after the commit: %s finishes it', async (which) => {
    const mine = install();
    copyFileSync(mine.key, `${mine.key}.old`);
    await mine.json('keys rewrap --yes');
    const next = read(mine.key);
    renameSync(mine.key, mine.pending);
    renameSync(`${mine.key}.old`, mine.key);
    if (which === 'any command') await mine.json('tenants list');
    else await expectWorking(mine);
    expect(existsSync(mine.pending)).toBe(false);
    expect(read(mine.key)).toBe(next);
  });

  it.each([
    ['before the commit', createKey()],
    ['while the new key was being written', ''],
  ])('killed %s: the old key still works, and another rewrap succeeds', async (_when, pending) => {
    const mine = install();
    const old = read(mine.key);
    writeFileSync(mine.pending, pending, { mode: 0o600 });
    await expectWorking(mine);
    expect(read(mine.key)).toBe(old);
    await mine.json('keys rewrap --yes');
    expect(read(mine.key)).not.toBe(old);
    expect(existsSync(mine.pending)).toBe(false);
    await expectWorking(mine);
  });

  it('neither key fits: a refusal, and both files stay', async () => {
    const mine = install();
    const [wrongKey, pending] = [createKey(), createKey()];
    writeFileSync(mine.key, wrongKey);
    writeFileSync(mine.pending, pending);
    expectRefused(await mine.gpd('serve --port 0'));
    expect([read(mine.key), read(mine.pending)]).toEqual([wrongKey, pending]);
  });

  it('a key outside the data directory is named by --new-key-file, and 78 without it', async () => {
    const directory = tempDir('keys');
    const [file, next] = [join(directory, 'a'), join(directory, 'b')];
    for (const path of [file, next]) writeFileSync(path, createKey());
    const env = { GPD_DATA_DIR: freshDir(), GPD_MASTER_KEY_FILE: file };
    await gpdJson(['init', '--tenant', KID], { env });
    const ran = await runGpd(['keys', 'rewrap', '--yes'], { env });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toContain('--new-key-file');
    const before = [read(file), read(next)];
    const rewrapped = await runGpd(['keys', 'rewrap', '--yes', '--new-key-file', next], { env });
    // Otherwise the next command would fail without an explanation.
    expect(rewrapped.stderr).toContain(`GPD_MASTER_KEY_FILE=${next}`);
    expect(rewrapped.code).toBe(0);
    expect([read(file), read(next)]).toEqual(before);
    expect((await runGpd(['tenants', 'list'], { env })).code).toBe(78);
    await gpdJson(['tenants', 'list'], { env: { ...env, GPD_MASTER_KEY_FILE: next } });
  });
});
