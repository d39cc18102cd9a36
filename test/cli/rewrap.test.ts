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

/** A copy of it, before anything was wrapped anew. */
function install(): Installation {
  const dataDir = tempDir('data');
  cpSync(original.dataDir, dataDir, { recursive: true });
  const key = join(dataDir, 'master.key');
  return { dataDir, key, pending: `${key}.new`, targets: original.targets };
}

const read = (path: string): string => readFileSync(path, 'utf8');
const rewrap = (dataDir: string, ...flags: string[]) =>
  gpdJson(['keys', 'rewrap', ...flags], { env: { GPD_DATA_DIR: dataDir } });

/** The installation starts, and both tenants' bundles open. */
async function expectWorking({ dataDir, targets }: Installation): Promise<void> {
  const gpd = await startGpd({ dataDir });
  for (const target of targets) expectCore(await post(gpd.url, createBundle(target)), 'ok');
  await gpd.stop();
}

describe.concurrent('gpd keys rewrap', () => {
  it('wraps everything with a new master key, and the old one opens nothing any more', async () => {
    const made = install();
    const old = read(made.key);
    const before = await dumpDatabase(made.dataDir);
    const result = await rewrap(made.dataDir, '--yes');
    // What the tenants have, and the server's own secret.
    const secrets = (before['tenant_secrets'] ?? []).length + 1;
    expect(secrets).toBeGreaterThanOrEqual(4);
    expect(result).toEqual({ secrets, sealKeys: 3, masterKey: made.key, dryRun: false });
    expect(read(made.key)).not.toBe(old);
    expect((statSync(made.key).mode & 0o777).toString(8)).toBe('600');
    expect(existsSync(made.pending)).toBe(false);
    const after = await dumpDatabase(made.dataDir);
    for (const table of ['tenant_secrets', 'seal_keys']) {
      const kept = (after[table] ?? []).filter((row) => before[table]?.includes(row));
      expect({ table, kept }).toEqual({ table, kept: [] });
    }
    expect(after['meta']).not.toEqual(before['meta']);
    await expectWorking(made);
    writeFileSync(made.key, old);
    const refused = await runGpd(['serve', '--port', '0'], { env: { GPD_DATA_DIR: made.dataDir } });
    expect(refused.code).toBe(78);
  });

  it('--dry-run counts and changes nothing; without --yes nothing happens', async () => {
    const made = install();
    const before = [await dumpDatabase(made.dataDir), read(made.key)];
    const said = await rewrap(made.dataDir, '--dry-run');
    expect(said).toMatchObject({ sealKeys: 3, masterKey: made.key, dryRun: true });
    const ran = await runGpd(['keys', 'rewrap'], { env: { GPD_DATA_DIR: made.dataDir }, input: 'yes\n' });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect([await dumpDatabase(made.dataDir), read(made.key)]).toEqual(before);
    expect(existsSync(made.pending)).toBe(false);
    expect(await rewrap(made.dataDir, '--yes')).toEqual({ ...said, dryRun: false });
  });

  it('killed after the commit: the next start finishes it', async () => {
    const made = install();
    copyFileSync(made.key, `${made.key}.old`);
    await rewrap(made.dataDir, '--yes');
    const next = read(made.key);
    renameSync(made.key, made.pending);
    renameSync(`${made.key}.old`, made.key);
    await expectWorking(made);
    expect(read(made.key)).toBe(next);
    expect(existsSync(made.pending)).toBe(false);
  });

  it('killed after the commit: any command finishes it too', async () => {
    const made = install();
    copyFileSync(made.key, `${made.key}.old`);
    await rewrap(made.dataDir, '--yes');
    renameSync(made.key, made.pending);
    renameSync(`${made.key}.old`, made.key);
    await gpdJson(['tenants', 'list'], { env: { GPD_DATA_DIR: made.dataDir } });
    expect(existsSync(made.pending)).toBe(false);
    await expectWorking(made);
  });

  it('killed before the commit: the old key still works, and another rewrap succeeds', async () => {
    const made = install();
    const old = read(made.key);
    writeFileSync(made.pending, randomBytes(32).toString('base64'), { mode: 0o600 });
    await expectWorking(made);
    expect(read(made.key)).toBe(old);
    await rewrap(made.dataDir, '--yes');
    expect(read(made.key)).not.toBe(old);
    expect(existsSync(made.pending)).toBe(false);
    await expectWorking(made);
  });

  it('killed while the new key was being written: the old key still works, and another rewrap succeeds', async () => {
    const made = install();
    writeFileSync(made.pending, '', { mode: 0o600 });
    await expectWorking(made);
    await rewrap(made.dataDir, '--yes');
    await expectWorking(made);
  });

  it('neither key fits: a refusal, and both files stay', async () => {
    const made = install();
    const [wrong, pending] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
    writeFileSync(made.key, wrong);
    writeFileSync(made.pending, pending);
    const ran = await runGpd(['serve', '--port', '0'], { env: { GPD_DATA_DIR: made.dataDir } });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toMatch(/master key/);
    expect([read(made.key), read(made.pending)]).toEqual([wrong, pending]);
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
    // The next command would fail otherwise, and nobody would know why.
    expect(rewrapped).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`GPD_MASTER_KEY_FILE=${next}`) as string,
    });
    expect([read(file), read(next)]).toEqual(before);
    expect((await runGpd(['tenants', 'list'], { env })).code).toBe(78);
    await gpdJson(['tenants', 'list'], { env: { ...env, GPD_MASTER_KEY_FILE: next } });
  });
});
