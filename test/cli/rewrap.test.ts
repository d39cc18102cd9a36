import { randomBytes } from 'node:crypto';
import { copyFileSync, cpSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { dumpDatabase } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { initGpd, type SealTarget, startGpd } from '../support/server.ts';

interface Installation {
  readonly dataDir: string;
  readonly key: string;
  readonly pending: string;
  readonly targets: readonly SealTarget[];
}

let original: { readonly dataDir: string; readonly targets: readonly SealTarget[] };
beforeAll(async () => {
  original = await initGpd([
    { kid: KID, origins: [] },
    { kid: 'other', origins: [] },
  ]);
  const env = { GPD_DATA_DIR: original.dataDir };
  await gpdJson(['keys', 'symmetric', KID], { env });
  await gpdJson(['keys', 'rotate', KID], { env });
});

/** Copies the installation before anything was wrapped again. */
function install(): Installation {
  const dataDir = tempDir('data');
  cpSync(original.dataDir, dataDir, { recursive: true });
  const key = join(dataDir, 'master.key');
  return { dataDir, key, pending: `${key}.new`, targets: original.targets };
}

const read = (path: string): string => readFileSync(path, 'utf8');
const rewrap = (dataDir: string, ...flags: string[]) =>
  gpdJson(['keys', 'rewrap', ...flags], { env: { GPD_DATA_DIR: dataDir } });

/** Expects that the installation starts, and that bundles of both tenants can be decrypted. */
async function expectWorking({ dataDir, targets }: Installation): Promise<void> {
  const gpd = await startGpd({ dataDir });
  for (const target of targets) expectCore(await post(gpd.url, createBundle(target)), 'ok');
  await gpd.stop();
}

describe.concurrent('gpd keys rewrap', () => {
  it('wraps everything with a new master key, and the old one opens nothing any more', async () => {
    const installation = install();
    const old = read(installation.key);
    const before = await dumpDatabase(installation.dataDir);
    const result = await rewrap(installation.dataDir, '--yes');
    // The secrets of the tenants, and the server secret.
    const secrets = (before['tenant_secrets'] ?? []).length + 1;
    expect(secrets).toBeGreaterThanOrEqual(4);
    expect(result).toEqual({ secrets, sealKeys: 3, masterKey: installation.key, dryRun: false });
    expect(read(installation.key)).not.toBe(old);
    expect((statSync(installation.key).mode & 0o777).toString(8)).toBe('600');
    expect(existsSync(installation.pending)).toBe(false);
    const after = await dumpDatabase(installation.dataDir);
    for (const table of ['tenant_secrets', 'seal_keys']) {
      const unchangedRows = (after[table] ?? []).filter((row) => before[table]?.includes(row));
      expect({ table, kept: unchangedRows }).toEqual({ table, kept: [] });
    }
    expect(after['meta']).not.toEqual(before['meta']);
    await expectWorking(installation);
    writeFileSync(installation.key, old);
    const refused = await runGpd(['serve', '--port', '0'], { env: { GPD_DATA_DIR: installation.dataDir } });
    expect(refused.code).toBe(78);
  });

  it('--dry-run counts and changes nothing; without --yes nothing happens', async () => {
    const installation = install();
    const before = [await dumpDatabase(installation.dataDir), read(installation.key)];
    const report = await rewrap(installation.dataDir, '--dry-run');
    expect(report).toMatchObject({ sealKeys: 3, masterKey: installation.key, dryRun: true });
    const ran = await runGpd(['keys', 'rewrap'], {
      env: { GPD_DATA_DIR: installation.dataDir },
      input: 'yes\n',
    });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect([await dumpDatabase(installation.dataDir), read(installation.key)]).toEqual(before);
    expect(existsSync(installation.pending)).toBe(false);
    expect(await rewrap(installation.dataDir, '--yes')).toEqual({ ...report, dryRun: false });
  });

  it('killed after the commit: the next start finishes it', async () => {
    const installation = install();
    copyFileSync(installation.key, `${installation.key}.old`);
    await rewrap(installation.dataDir, '--yes');
    const next = read(installation.key);
    renameSync(installation.key, installation.pending);
    renameSync(`${installation.key}.old`, installation.key);
    await expectWorking(installation);
    expect(read(installation.key)).toBe(next);
    expect(existsSync(installation.pending)).toBe(false);
  });

  it('killed after the commit: any command finishes it too', async () => {
    const installation = install();
    copyFileSync(installation.key, `${installation.key}.old`);
    await rewrap(installation.dataDir, '--yes');
    renameSync(installation.key, installation.pending);
    renameSync(`${installation.key}.old`, installation.key);
    await gpdJson(['tenants', 'list'], { env: { GPD_DATA_DIR: installation.dataDir } });
    expect(existsSync(installation.pending)).toBe(false);
    await expectWorking(installation);
  });

  it('killed before the commit: the old key still works, and another rewrap succeeds', async () => {
    const installation = install();
    const old = read(installation.key);
    writeFileSync(installation.pending, randomBytes(32).toString('base64'), { mode: 0o600 });
    await expectWorking(installation);
    expect(read(installation.key)).toBe(old);
    await rewrap(installation.dataDir, '--yes');
    expect(read(installation.key)).not.toBe(old);
    expect(existsSync(installation.pending)).toBe(false);
    await expectWorking(installation);
  });

  it('killed while the new key was being written: the old key still works, and another rewrap succeeds', async () => {
    const installation = install();
    writeFileSync(installation.pending, '', { mode: 0o600 });
    await expectWorking(installation);
    await rewrap(installation.dataDir, '--yes');
    await expectWorking(installation);
  });

  it('neither key fits: a refusal, and both files stay', async () => {
    const installation = install();
    const [wrongKey, pending] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
    writeFileSync(installation.key, wrongKey);
    writeFileSync(installation.pending, pending);
    const ran = await runGpd(['serve', '--port', '0'], { env: { GPD_DATA_DIR: installation.dataDir } });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toMatch(/master key/);
    expect([read(installation.key), read(installation.pending)]).toEqual([wrongKey, pending]);
  });

  it('a key outside the data directory is named by --new-key-file, and 78 without it', async () => {
    const directory = tempDir('keys');
    const [file, next] = [join(directory, 'a'), join(directory, 'b')];
    for (const path of [file, next]) writeFileSync(path, randomBytes(32).toString('base64'));
    const dataDir = join(tempDir('data'), 'gpd-data');
    const env = { GPD_DATA_DIR: dataDir, GPD_MASTER_KEY_FILE: file };
    await gpdJson(['init', '--tenant', KID], { env });
    const ran = await runGpd(['keys', 'rewrap', '--yes'], { env });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toContain('--new-key-file');
    const before = [read(file), read(next)];
    const rewrapped = await runGpd(['keys', 'rewrap', '--yes', '--new-key-file', next, '--json'], { env });
    // Otherwise the next command would fail without an explanation.
    expect(rewrapped).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`GPD_MASTER_KEY_FILE=${next}`) as string,
    });
    expect([read(file), read(next)]).toEqual(before);
    expect((await runGpd(['tenants', 'list'], { env })).code).toBe(78);
    await gpdJson(['tenants', 'list'], { env: { ...env, GPD_MASTER_KEY_FILE: next } });
  });
});
