import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf, startApi } from '../../consent/app/support/api.ts';
import { gpdJson, runGpd, tempDir } from '../../support/command.ts';
import { KID, OTHER } from '../../support/constants.ts';
import { expectCore, expectError, post } from '../../support/expect.ts';
import { makeBundle } from '../../support/seal.ts';
import { startGpd } from '../../support/server.ts';

/** Finding 5: a restore brought back what somebody had ended since the backup. */

let api: Api;
let backup: string;
let env: Record<string, string>;
let session: string;
let old: ReturnType<typeof makeBundle>;
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
  await api.gpd.json(['backup', backup]);
  old = makeBundle(target);
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
    const told = await gpdJson(['restore', backup, '--dry-run'], { env });
    const again = { apiKeysRevoked: [revoked], sealKeysDestroyed: [`${KID}/1`] };
    expect(told).toMatchObject(again);
    const { stdout } = await runGpd(['restore', backup, '--yes'], { env });
    expect(stdout).toMatch(`API key   ${revoked} was revoked after it`);
    expect(stdout).toMatch(`seal key  ${KID}/1 was destroyed after it`);
    expect(stdout).toMatch('sessions  all are ended');
    const gpd = await startGpd({ dataDir: String(env['GPD_DATA_DIR']) });
    const restored = apiOf(gpd, api.keys);
    expect((await restored.get('/v1/consent/purposes', api.keys.secret)).status).toBe(200);
    expectError(await restored.get('/v1/consent/purposes', api.keys['read-only']), 'unauthenticated');
    expectError(await restored.get('/v1/consent/purposes', session), 'unauthenticated');
    expect((await fetch(`${gpd.url}/_fp/pubkey?kid=${KID}`)).status).toBe(404);
    // Nobody knows any more that this one was taken before.
    expectCore(await post(gpd.url, old), 'stale');
    expectCore(await post(gpd.url, makeBundle(target)), 'ok');
    expect((await runGpd(['doctor', '--all'], { env })).stdout).toMatch(/pass +clock\.forgotten/);
    await gpd.stop();
  });
});
