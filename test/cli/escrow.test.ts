import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRecoveryKey } from '../../src/keys/recovery-key.ts';
import type { Report } from '../../src/ops/doctor/doctor-service.ts';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { desktopChrome } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';
import { createOwn, type Own, ownOf } from './support/own.ts';

/** Prints the master key on paper, and recovers it from there. */

const keyOf = (dataDir: string): string => readFileSync(join(dataDir, 'master.key'), 'utf8').trim();
const emptyEnvironment = () => ({ GPD_DATA_DIR: join(tempDir('fresh'), 'gpd-data') });
const paperOf = async ({ gpd }: Pick<Own, 'gpd'>): Promise<string> => (await gpd('master-key escrow')).stdout;
const groupsOf = (paper: string): string[] =>
  paper
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => line.split(' '));
const recover = (env: { GPD_DATA_DIR: string }, input: string, ...words: readonly string[]) =>
  runGpd(['master-key', 'recover', ...words], { env, input });

async function escrowCheck({ gpd }: Own): Promise<string> {
  const { checks } = JSON.parse((await gpd('doctor --json')).stdout) as Report;
  const found = checks.find(({ id }) => id === 'master-key.escrow');
  return `${found?.status}: ${found?.detail}`;
}

describe.concurrent('gpd master-key', () => {
  it('a fresh machine with the paper and a backup has everything again', async () => {
    const gpd = await startGpd();
    const to = gpd.targets[0]!;
    const signals = desktopChrome();
    const bundle = createBundle(to, { signals });
    const first = expectCore(await post(gpd.url, bundle), 'ok');
    const mine = ownOf(gpd.dataDir);
    const { key } = await mine.json<{ key: string }>(`apikeys create ${KID} --scope secret --name backend`);
    const file = join(tempDir('backups'), 'b');
    await mine.json(`backup ${file}`);
    const paper = await paperOf(mine);
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
    const { visitorId } = expectCore(await post(again.url, createBundle(to, { signals })), 'ok');
    expect(visitorId).toBe(first.visitorId);
    const headers = { authorization: `Bearer ${key}` };
    expect((await fetch(`${again.url}/v1/decisions/${first.requestId}`, { headers })).status).toBe(200);
    await again.stop();
  });

  it('prints the key that is in the file, and nothing of it on stderr', async () => {
    const { dataDir, gpd, json } = await createOwn();
    const ran = await gpd('master-key escrow');
    expect(ran.code).toBe(0);
    const key = Buffer.from(keyOf(dataDir), 'base64');
    expect(readRecoveryKey(ran.stdout)).toEqual({ ok: true, key });
    const { groups } = await json<{ groups: string[] }>('master-key escrow');
    expect(readRecoveryKey(groups.join(' '))).toEqual({ ok: true, key });
    for (const group of groups) expect(ran.stderr).not.toContain(group);
  });

  it('names the group with a typo, writes nothing, and repeats nothing of what was typed', async () => {
    const groups = groupsOf(await paperOf(await createOwn()));
    const seventh = groups[6] ?? '';
    const typo = (seventh.startsWith('q') ? 'p' : 'q') + seventh.slice(1);
    const env = emptyEnvironment();
    const ran = await recover(env, groups.with(6, typo).join(' '));
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toBe('gpd: group 7 is not as printed; nothing was changed\n');
    expect(existsSync(env.GPD_DATA_DIR)).toBe(false);
    for (const input of ['', 'x'.repeat(20_000), '\u0000\u00ff']) {
      const refused = await recover(env, input);
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  it('puts a lost key back beside its data, and no other', async () => {
    const [mine, other] = await Promise.all([createOwn(), createOwn()]);
    const paper = await paperOf(mine);
    const key = keyOf(mine.dataDir);
    expect(await recover(mine.env, paper)).toMatchObject({ code: 7, stdout: '' });
    rmSync(join(mine.dataDir, 'master.key'));
    // Both are copies of one template, so they have the same key until one of them is changed.
    await other.json('keys rewrap --yes');
    const refused = await recover(mine.env, await paperOf(other));
    expect(refused).toMatchObject({ code: 78, stdout: '' });
    expect(refused.stderr).toMatch(/another master key/);
    expect(readdirSync(mine.dataDir)).not.toContain('master.key');
    const recovered = await recover(mine.env, paper, '--json');
    expect(JSON.parse(recovered.stdout)).toMatchObject({ opens: true });
    expect(keyOf(mine.dataDir)).toBe(key);
    expect((await mine.gpd('tenants list')).code).toBe(0);
  });

  it('--out writes elsewhere, for a credential', async () => {
    const mine = await createOwn();
    const out = join(tempDir('etc'), 'master-key');
    const paper = await paperOf(mine);
    expect((await recover(emptyEnvironment(), paper, '--out', out)).code).toBe(0);
    expect(readFileSync(out, 'utf8').trim()).toBe(keyOf(mine.dataDir));
    const again = await recover(emptyEnvironment(), paper, '--out', out);
    expect(again).toMatchObject({ code: 7, stdout: '' });
  });

  it('the doctor asks for a confirmed paper, until there is one of this key', async () => {
    const mine = await createOwn();
    const { dataDir, env } = mine;
    const confirm = (input: string) => runGpd(['master-key', 'confirm', '--json'], { env, input });
    expect(await escrowCheck(mine)).toMatch(/^warn: no recovery key/);
    const paper = await paperOf(mine);
    // Printing the recovery key does not confirm it.
    expect(await escrowCheck(mine)).toMatch(/^warn/);
    expect(JSON.parse((await confirm(paper)).stdout)).toMatchObject({ confirmed: true });
    expect(await escrowCheck(mine)).toMatch(/^pass/);
    await mine.json('keys rewrap --yes');
    expect(await escrowCheck(mine)).toMatch(/^warn: .*earlier master key/);
    expect(await confirm(paper)).toMatchObject({ code: 1, stdout: '' });
    expect(await escrowCheck(mine)).toMatch(/^warn/);
    expect((await confirm(await paperOf(mine))).code).toBe(0);
    expect(await escrowCheck(mine)).toMatch(/^pass/);
    const stored = readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name)).toString('latin1'));
    const words = groupsOf(paper).slice(0, 2).join(' ');
    expect(stored.some((bytes) => bytes.includes(words))).toBe(false);
  });

  it('a data directory without a gpd has nothing to print', async () => {
    const env = emptyEnvironment();
    mkdirSync(env.GPD_DATA_DIR);
    const input = await paperOf(await createOwn());
    for (const command of ['escrow', 'confirm'])
      expect(await runGpd(['master-key', command], { env, input })).toMatchObject({ code: 78, stdout: '' });
  });
});
