import { appendFileSync, existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createOwn, type Own, ownOf } from '../../cli/support/own.ts';
import { apiOf, startApi } from '../../consent/app/support/api.ts';
import { tempDir } from '../../support/command.ts';
import { KID, OTHER } from '../../support/constants.ts';
import { expectCore, expectError, post, SEEN_WITHIN } from '../../support/expect.ts';
import { createBundle } from '../../support/seal.ts';
import { startGpd } from '../../support/server.ts';

/** Keys, staff, holds and tenants that ended after the backup stay ended after its restore. */

const fileOf = (): string => join(tempDir('backups'), 'b');
const pubkeyOf = (url: string, kid: string): Promise<Response> => fetch(`${url}/_fp/pubkey?kid=${kid}`);

it('what was ended since the backup is ended again after its restore, and told', async () => {
  const api = await startApi();
  const { dataDir, url } = api.gpd;
  const { gpd, json } = ownOf(dataDir);
  const { publicKey } = (await (await pubkeyOf(url, OTHER)).json()) as { publicKey: string };
  const target = { kid: OTHER, publicKey: Buffer.from(publicKey, 'base64') };
  const session = await api.session('anna');
  const backup = fileOf();
  await json(`staff invite Rosa --role dpo --tenant ${KID}`);
  await json(`backup ${backup}`);
  await json('staff remove Rosa --yes');
  const old = createBundle(target);
  expectCore(await post(url, old), 'ok');
  const keys = await json<readonly { id: string; scope: string }[]>(`apikeys list ${KID}`);
  const id = keys.find(({ scope }) => scope === 'read-only')?.id ?? '';
  await json(`apikeys revoke ${id} --yes`);
  await json(`keys rotate ${KID}`);
  await json(`keys destroy ${KID} 1 --yes`);
  await api.stop();

  const again = { apiKeysRevoked: [id], sealKeysDestroyed: [`${KID}/1`] };
  expect(await json(`restore ${backup} --dry-run`)).toMatchObject(again);
  const { stdout } = await gpd(`restore ${backup} --yes`);
  expect(stdout).toMatch(`API key   ${id} was revoked after it`);
  expect(stdout).toMatch(`seal key  ${KID}/1 was destroyed after it`);
  expect(stdout).toMatch(/staff {5}stf_\w+ was removed after it/);
  expect(await json('staff list')).toEqual([]);
  expect(stdout).toMatch('sessions  all are ended');
  const server = await startGpd({ dataDir });
  const restored = apiOf(server, api.keys);
  expect((await restored.get('/v1/consent/purposes', api.keys.secret)).status).toBe(200);
  for (const credential of [api.keys['read-only'], session])
    expectError(await restored.get('/v1/consent/purposes', credential), 'unauthenticated');
  expect((await pubkeyOf(server.url, KID)).status).toBe(404);
  // The restored database does not know that this bundle was accepted before, so its age has to refuse it.
  expectCore(await post(server.url, old), 'stale');
  expectCore(await post(server.url, createBundle(target)), 'ok');
  expect((await gpd('doctor --all')).stdout).toMatch(/pass +host\.clock/);
  await server.stop();
});

// Guards against: the change was committed, its line was lost, and a restore brought the destroyed key back.
describe('while erasures.log cannot be written', () => {
  async function damage() {
    const mine = await createOwn();
    const { id } = await mine.json<{ id: string }>(`apikeys create ${KID} --scope secret --name n`);
    await mine.json(`keys rotate ${KID}`);
    const file = fileOf();
    await mine.json(`backup ${file}`);
    const log = join(mine.dataDir, 'erasures.log');
    mkdirSync(log);
    for (const [line, act] of [
      [`keys destroy ${KID} 1`, `generation 1 of ${KID} is destroyed`],
      [`apikeys revoke ${id}`, 'is revoked'],
    ]) {
      const ran = await mine.gpd(`${line} --yes`);
      expect(ran.code).toBe(1);
      expect(ran.stderr).toContain(`${act}, but erasures.log could not be written`);
    }
    return { ...mine, file, log };
  }

  /** Restores the file, and expects that the seal key and the API key are ended afterwards. */
  async function expectEnded({ gpd, query, file }: Own & { readonly file: string }): Promise<void> {
    expect(await gpd(`restore ${file} --yes`)).toMatchObject({ code: 0 });
    expect(await query("SELECT 1 FROM seal_keys WHERE state = 'destroyed'")).toHaveLength(1);
    expect(await query('SELECT 1 FROM api_keys WHERE revoked_at IS NOT NULL')).toHaveLength(1);
  }

  it('a command says what it has done, and writes the line when it is repeated', async () => {
    const mine = await damage();
    rmdirSync(mine.log);
    expect(await mine.gpd(`keys destroy ${KID} 1 --yes`)).toMatchObject({ code: 0 });
    await expectEnded(mine);
  });

  it('the next sweep of a server writes what is missing, once', async () => {
    const mine = await damage();
    rmdirSync(mine.log);
    const gpd = await startGpd({ dataDir: mine.dataDir, app: { intervals: { housekeeping: 50 } } });
    const text = (): string => (existsSync(mine.log) ? readFileSync(mine.log, 'utf8') : '');
    await expect.poll(text, SEEN_WITHIN).toMatch('seal-key');
    await expect.poll(text, SEEN_WITHIN).toMatch('apikey.revoked');
    await gpd.stop();
    expect(text().match(/"event"/g)).toHaveLength(2);
    await expectEnded(mine);
  });

  it('a tenant is not removed, answers nobody, and is removed by the next attempt', async () => {
    const mine = await damage();
    const failure = await mine.gpd(`tenants remove ${KID} --yes`);
    expect(failure.code).toBe(1);
    expect(failure.stderr).toMatch(/keeps its data.*erasures\.log/);
    expect(await mine.query('SELECT revision FROM tenants')).toEqual([{ revision: -1 }]);
    rmdirSync(mine.log);
    expect(await mine.gpd(`tenants remove ${KID} --yes`)).toMatchObject({ code: 0 });
    expect(readFileSync(mine.log, 'utf8')).toMatch(`off_${KID}_`);
    expect(await mine.gpd(`restore ${mine.file} --yes`)).toMatchObject({ code: 0 });
    const gpd = await startGpd({ dataDir: mine.dataDir });
    expect((await pubkeyOf(gpd.url, KID)).status).toBe(404);
    await gpd.stop();
  });
});

// Guards against: a line without its MAC was reported as broken, and was applied all the same.
it('a line whose MAC is wrong ends no key, no hold and no tenant, and is reported', async () => {
  const { dataDir, gpd, json, query } = await createOwn();
  const log = join(dataDir, 'erasures.log');
  await json(`tenants add ${OTHER} --origin https://other.example`);
  const { id } = await json(`apikeys create ${KID} --scope secret --name n`);
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
  const server = await startGpd({ dataDir });
  for (const kid of [KID, OTHER]) expect((await pubkeyOf(server.url, kid)).status).toBe(200);
  await server.stop();
  expect(await query('SELECT 1 FROM api_keys WHERE revoked_at IS NOT NULL')).toEqual([]);
  expect(await query("SELECT 1 FROM audit_log WHERE action = 'hold.released'")).toEqual([]);
  expect((await gpd('doctor --all')).stdout).toMatch(/fail +data\.erasure-log/);
});
