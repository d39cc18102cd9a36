import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRecoveryKey } from '../../src/keys/recovery-key.ts';
import type { Report } from '../../src/ops/doctor/doctor.ts';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { desktopChrome } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';
import { createOwn } from './support/own.ts';

/** Prints the master key on paper, and recovers it from there. */

const keyOf = (dataDir: string): string => readFileSync(join(dataDir, 'master.key'), 'utf8').trim();
const emptyEnvironment = (): { GPD_DATA_DIR: string } => ({
  GPD_DATA_DIR: join(tempDir('fresh'), 'gpd-data'),
});

async function paperOf(dataDir: string): Promise<string> {
  return (await runGpd(['master-key', 'escrow'], { env: { GPD_DATA_DIR: dataDir } })).stdout;
}

async function escrowCheck(dataDir: string): Promise<string> {
  const env = { GPD_DATA_DIR: dataDir, GPD_PORT: '9' };
  const ran = await runGpd(['doctor', '--json'], { env });
  const { checks } = JSON.parse(ran.stdout) as Report;
  const found = checks.find(({ id }) => id === 'master-key.escrow');
  return `${found?.status}: ${found?.detail}`;
}

describe.concurrent('gpd master-key', () => {
  it('a fresh machine with the paper and a backup has everything again', async () => {
    const gpd = await startGpd();
    const [to] = gpd.targets;
    const signals = desktopChrome();
    const bundle = createBundle(to!, { signals });
    const first = expectCore(await post(gpd.url, bundle), 'ok');
    const create = ['apikeys', 'create', KID, '--scope', 'secret', '--name', 'backend'];
    const created = await gpd.json<{ key: string }>(create);
    const file = join(tempDir('backups'), 'b');
    await gpd.json(['backup', file]);
    const paper = await paperOf(gpd.dataDir);
    await gpd.stop();
    rmSync(gpd.dataDir, { recursive: true });

    const env = emptyEnvironment();
    const recovered = await gpdJson(['master-key', 'recover'], { env, input: paper.toUpperCase() });
    const path = join(env.GPD_DATA_DIR, 'master.key');
    expect(recovered).toMatchObject({ file: path, opens: null });
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
    await gpdJson(['restore', file], { env });
    expect(await gpdJson(['consent', 'verify', KID], { env })).toMatchObject({ ok: true });
    const again = await startGpd({ dataDir: env.GPD_DATA_DIR });
    expectCore(await post(again.url, bundle), 'replay');
    // Device ids are HMACs under keys that the master key wraps, so the same device gets the same id.
    expect(expectCore(await post(again.url, createBundle(to!, { signals })), 'ok').visitorId).toBe(
      first.visitorId,
    );
    const read = await fetch(`${again.url}/v1/decisions/${first.requestId}`, {
      headers: { authorization: `Bearer ${created.key}` },
    });
    expect(read.status).toBe(200);
    await again.stop();
  });

  it('prints the key that is in the file, and nothing of it on stderr', async () => {
    const { dataDir, gpd, json } = await createOwn();
    const ran = await gpd('master-key', 'escrow');
    expect(ran.code).toBe(0);
    const key = Buffer.from(keyOf(dataDir), 'base64');
    expect(readRecoveryKey(ran.stdout)).toEqual({ ok: true, key });
    const { groups } = await json<{ groups: string[]; fingerprint: string }>('master-key', 'escrow');
    expect(readRecoveryKey(groups.join(' '))).toEqual({ ok: true, key });
    for (const group of groups) expect(ran.stderr).not.toContain(group);
  });

  it('names the group with a typo, writes nothing, and repeats nothing of what was typed', async () => {
    const { dataDir } = await createOwn();
    const paper = await paperOf(dataDir);
    const groups = paper
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .join(' ')
      .trim()
      .split(' ');
    const seventh = groups[6] ?? '';
    const typo = (seventh.startsWith('q') ? 'p' : 'q') + seventh.slice(1);
    const env = emptyEnvironment();
    const ran = await runGpd(['master-key', 'recover'], { env, input: groups.with(6, typo).join(' ') });
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toBe('gpd: group 7 is not as printed; nothing was changed\n');
    expect(existsSync(env.GPD_DATA_DIR)).toBe(false);
    for (const input of ['', 'x'.repeat(20_000), '\u0000\u00ff']) {
      const refused = await runGpd(['master-key', 'recover'], { env, input });
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  it('puts a lost key back beside its data, and no other', async () => {
    const [mine, other] = await Promise.all([createOwn(), createOwn()]);
    const env = { GPD_DATA_DIR: mine.dataDir };
    const [paper, foreign] = await Promise.all([paperOf(mine.dataDir), paperOf(other.dataDir)]);
    const key = keyOf(mine.dataDir);
    const conflict = await runGpd(['master-key', 'recover'], { env, input: paper });
    expect(conflict).toMatchObject({ code: 7, stdout: '' });
    rmSync(join(mine.dataDir, 'master.key'));
    // Both are copies of one template, so they have the same key until one of them is changed.
    expect(foreign).toBe(paper);
    await gpdJson(['keys', 'rewrap', '--yes'], { env: { GPD_DATA_DIR: other.dataDir } });
    const refused = await runGpd(['master-key', 'recover'], { env, input: await paperOf(other.dataDir) });
    expect(refused).toMatchObject({ code: 78, stdout: '' });
    expect(refused.stderr).toMatch(/another master key/);
    expect(readdirSync(mine.dataDir)).not.toContain('master.key');
    expect(await gpdJson(['master-key', 'recover'], { env, input: paper })).toMatchObject({ opens: true });
    expect(keyOf(mine.dataDir)).toBe(key);
    expect((await mine.gpd('tenants', 'list')).code).toBe(0);
  });

  it('--out writes elsewhere, for a credential', async () => {
    const { dataDir } = await createOwn();
    const out = join(tempDir('etc'), 'master-key');
    const input = await paperOf(dataDir);
    await gpdJson(['master-key', 'recover', '--out', out], { env: emptyEnvironment(), input });
    expect(readFileSync(out, 'utf8').trim()).toBe(keyOf(dataDir));
    const again = await runGpd(['master-key', 'recover', '--out', out], { env: emptyEnvironment(), input });
    expect(again).toMatchObject({ code: 7, stdout: '' });
  });

  it('the doctor asks for a confirmed paper, until there is one of this key', async () => {
    const { dataDir } = await createOwn();
    const env = { GPD_DATA_DIR: dataDir };
    expect(await escrowCheck(dataDir)).toMatch(/^warn: no recovery key/);
    const paper = await paperOf(dataDir);
    // Printing the recovery key does not confirm it.
    expect(await escrowCheck(dataDir)).toMatch(/^warn/);
    expect(await gpdJson(['master-key', 'confirm'], { env, input: paper })).toMatchObject({
      confirmed: true,
    });
    expect(await escrowCheck(dataDir)).toMatch(/^pass/);
    await gpdJson(['keys', 'rewrap', '--yes'], { env });
    expect(await escrowCheck(dataDir)).toMatch(/^warn: .*earlier master key/);
    const old = await runGpd(['master-key', 'confirm'], { env, input: paper });
    expect(old).toMatchObject({ code: 1, stdout: '' });
    expect(await escrowCheck(dataDir)).toMatch(/^warn/);
    await gpdJson(['master-key', 'confirm'], { env, input: await paperOf(dataDir) });
    expect(await escrowCheck(dataDir)).toMatch(/^pass/);
    const dump = readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name)).toString('latin1'));
    const [groups = ''] = paper.split('\n').filter((line) => !line.startsWith('#'));
    expect(dump.some((bytes) => bytes.includes(groups.slice(0, 11)))).toBe(false);
  });

  it('a data directory without a gpd has nothing to print', async () => {
    const env = emptyEnvironment();
    mkdirSync(env.GPD_DATA_DIR);
    for (const command of ['escrow', 'confirm']) {
      const input = (await paperOf((await createOwn()).dataDir)).toString();
      expect(await runGpd(['master-key', command], { env, input })).toMatchObject({ code: 78, stdout: '' });
    }
  });
});
