import { appendFileSync, existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf, startApi } from '../../consent/app/support/api.ts';
import { gpdJson, runGpd, tempDir } from '../../support/command.ts';
import { KID, OTHER } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectCore, expectError, post, SEEN_WITHIN } from '../../support/expect.ts';
import { createBundle } from '../../support/seal.ts';
import { initGpd, startGpd } from '../../support/server.ts';

/** Keys, staff, holds and tenants that ended after the backup stay ended after its restore. */

let api: Api;
let backup: string;
let env: Record<string, string>;
let session: string;
let old: ReturnType<typeof createBundle>;
let revoked: string;
let target: { kid: string; publicKey: Buffer };

interface Published {
  readonly publicKey: string;
}

beforeAll(async () => {
  api = await startApi();
  const { dataDir, url } = api.gpd;
  env = { GPD_DATA_DIR: dataDir };
  const { publicKey } = (await (await fetch(`${url}/_fp/pubkey?kid=${OTHER}`)).json()) as Published;
  target = { kid: OTHER, publicKey: Buffer.from(publicKey, 'base64') };
  session = await api.session('anna');
  backup = join(tempDir('backups'), 'b');
  await api.gpd.json(['staff', 'invite', 'Rosa', '--role', 'dpo', '--tenant', KID]);
  await api.gpd.json(['backup', backup]);
  await api.gpd.json(['staff', 'remove', 'Rosa', '--yes']);
  old = createBundle(target);
  expectCore(await post(url, old), 'ok');
  const keys = await api.gpd.json<readonly { id: string; scope: string }[]>(['apikeys', 'list', KID]);
  revoked = String(keys.find(({ scope }) => scope === 'read-only')?.id);
  await api.gpd.json(['apikeys', 'revoke', revoked, '--yes']);
  await api.gpd.json(['keys', 'rotate', KID]);
  await api.gpd.json(['keys', 'destroy', KID, '1', '--yes']);
  await api.stop();
});
afterAll(() => api.stop());

describe('after a restore', () => {
  it('what was ended since the backup is ended again, and told', async () => {
    const report = await gpdJson(['restore', backup, '--dry-run'], { env });
    const again = { apiKeysRevoked: [revoked], sealKeysDestroyed: [`${KID}/1`] };
    expect(report).toMatchObject(again);
    const { stdout } = await runGpd(['restore', backup, '--yes'], { env });
    expect(stdout).toMatch(`API key   ${revoked} was revoked after it`);
    expect(stdout).toMatch(`seal key  ${KID}/1 was destroyed after it`);
    expect(stdout).toMatch(/staff {5}stf_\w+ was removed after it/);
    expect(await gpdJson(['staff', 'list'], { env })).toEqual([]);
    expect(stdout).toMatch('sessions  all are ended');
    const gpd = await startGpd({ dataDir: String(env['GPD_DATA_DIR']) });
    const restored = apiOf(gpd, api.keys);
    expect((await restored.get('/v1/consent/purposes', api.keys.secret)).status).toBe(200);
    expectError(await restored.get('/v1/consent/purposes', api.keys['read-only']), 'unauthenticated');
    expectError(await restored.get('/v1/consent/purposes', session), 'unauthenticated');
    expect((await fetch(`${gpd.url}/_fp/pubkey?kid=${KID}`)).status).toBe(404);
    // The restored database does not know that this bundle was accepted before, so its age has to refuse it.
    expectCore(await post(gpd.url, old), 'stale');
    expectCore(await post(gpd.url, createBundle(target)), 'ok');
    expect((await runGpd(['doctor', '--all'], { env })).stdout).toMatch(/pass +host\.clock/);
    await gpd.stop();
  });
});

// Guards against: the change was committed, its line was lost, and a restore brought the destroyed key back.
describe('while erasures.log cannot be written', () => {
  /** Restores `file`. @returns the seal keys and API keys that are ended afterwards */
  async function restored(file: string, dataDir: string) {
    expect(await runGpd(['restore', file, '--yes'], { env: { GPD_DATA_DIR: dataDir } })).toMatchObject({
      code: 0,
    });
    const keys = await execute(dataDir, "SELECT kid FROM seal_keys WHERE state = 'destroyed'");
    const apiKeys = await execute(dataDir, 'SELECT kid FROM api_keys WHERE revoked_at IS NOT NULL');
    return { keys: keys.length, apiKeys: apiKeys.length };
  }

  async function damaged() {
    const { dataDir } = await initGpd();
    const options = { env: { GPD_DATA_DIR: dataDir } };
    const { id } = await gpdJson<{ id: string }>(
      ['apikeys', 'create', KID, '--scope', 'secret', '--name', 'n'],
      options,
    );
    await gpdJson(['keys', 'rotate', KID], options);
    const file = join(tempDir('backups'), 'b');
    await gpdJson(['backup', file], options);
    const log = join(dataDir, 'erasures.log');
    mkdirSync(log);
    const run = (...words: string[]) => runGpd([...words, '--yes'], options);
    const destroyed = await run('keys', 'destroy', KID, '1');
    expect(destroyed.code).toBe(1);
    expect(destroyed.stderr).toMatch(
      /generation 1 of \w+ is destroyed, but erasures\.log could not be written/,
    );
    const revoked = await run('apikeys', 'revoke', id);
    expect(revoked.code).toBe(1);
    expect(revoked.stderr).toMatch(/is revoked, but erasures\.log could not be written/);
    return { dataDir, file, log, run, id };
  }

  it('a command says what it has done, and writes the line when it is repeated', async () => {
    const { dataDir, file, log, run } = await damaged();
    rmdirSync(log);
    expect(await run('keys', 'destroy', KID, '1')).toMatchObject({ code: 0 });
    expect(await restored(file, dataDir)).toEqual({ keys: 1, apiKeys: 1 });
  });

  it('the next sweep of a server writes what is missing, once', async () => {
    const { dataDir, file, log } = await damaged();
    rmdirSync(log);
    const gpd = await startGpd({ dataDir, app: { intervals: { housekeeping: 50 } } });
    await expect
      .poll(() => (existsSync(log) ? readFileSync(log, 'utf8') : ''), SEEN_WITHIN)
      .toMatch('seal-key');
    await expect.poll(() => readFileSync(log, 'utf8'), SEEN_WITHIN).toMatch('apikey.revoked');
    await gpd.stop();
    expect(readFileSync(log, 'utf8').match(/"event"/g)).toHaveLength(2);
    expect(await restored(file, dataDir)).toEqual({ keys: 1, apiKeys: 1 });
  });

  it('a tenant is not removed, answers nobody, and is removed by the next attempt', async () => {
    const { dataDir, file, log, run } = await damaged();
    const failure = await run('tenants', 'remove', KID);
    expect(failure).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/keeps its data.*erasures\.log/),
    });
    expect(await execute(dataDir, 'SELECT revision FROM tenants')).toEqual([{ revision: -1 }]);
    rmdirSync(log);
    expect(await run('tenants', 'remove', KID)).toMatchObject({ code: 0 });
    expect(readFileSync(log, 'utf8')).toMatch(`off_${KID}_`);
    expect(await runGpd(['restore', file, '--yes'], { env: { GPD_DATA_DIR: dataDir } })).toMatchObject({
      code: 0,
    });
    const gpd = await startGpd({ dataDir });
    expect((await fetch(`${gpd.url}/_fp/pubkey?kid=${KID}`)).status).toBe(404);
    await gpd.stop();
  });
});

// Guards against: a line without its MAC was reported as broken, and was applied all the same.
it('a line whose MAC is wrong ends no key, no hold and no tenant, and is reported', {
  timeout: 120_000,
}, async () => {
  const { dataDir } = await initGpd();
  const options = { env: { GPD_DATA_DIR: dataDir } };
  const log = join(dataDir, 'erasures.log');
  await gpdJson(['tenants', 'add', OTHER, '--origin', 'https://other.example'], options);
  const words = ['apikeys', 'create', KID, '--scope', 'secret', '--name', 'n'];
  const { id } = await gpdJson<{ id: string }>(words, options);
  const at = new Date(Date.now() + 60_000).toISOString();
  const keep = { openContests: false, override: false };
  const removal = { receiptId: 'off_1', subject: OTHER, requestedBy: 'operator', keep };
  for (const line of [
    { tenant: KID, event: 'seal-key.destroyed', generation: 1 },
    { tenant: KID, event: 'apikey.revoked', id },
    { tenant: KID, event: 'hold.released', device: 'd'.repeat(43) },
    { tenant: OTHER, ...removal, refs: [{ kind: 'tenant', ref: OTHER }] },
  ])
    for (const mac of [{}, { n: 1, mac: 'A'.repeat(43) }])
      appendFileSync(log, `${JSON.stringify({ v: 1, at, ...line, ...mac })}\n`, { mode: 0o600 });
  const gpd = await startGpd({ dataDir });
  expect((await fetch(`${gpd.url}/_fp/pubkey?kid=${KID}`)).status).toBe(200);
  expect((await fetch(`${gpd.url}/_fp/pubkey?kid=${OTHER}`)).status).toBe(200);
  await gpd.stop();
  expect(await execute(dataDir, 'SELECT 1 FROM api_keys WHERE revoked_at IS NOT NULL')).toEqual([]);
  expect(await execute(dataDir, "SELECT 1 FROM audit_log WHERE action = 'hold.released'")).toEqual([]);
  expect((await runGpd(['doctor', '--all'], options)).stdout).toMatch(/fail +data\.erasure-log/);
});
