import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { runGpd, tempDir } from '../support/command.ts';
import { KID, OTHER } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { expectCore, post, SEEN_WITHIN } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { initGpd, startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { apiKey, startRights } from './support/rights.ts';

/** `gpd tenants remove`: a customer leaves, with an export, and leaves nothing. */

const VERIFIER = fileURLToPath(new URL('../../docs/verify.py', import.meta.url));

function verifyExport(folder: string) {
  const files = ['ledger_entries.ndjson', 'checkpoint', 'vkey'].map((name) => join(folder, name));
  return spawnSync('python3', [VERIFIER, ...files], { encoding: 'utf8' });
}

const rights = started(() => startRights());

it('exports, removes, leaves no byte, and is not brought back by an older database', async () => {
  const secret = await apiKey(rights, 'secret');
  const visit = await rights.visit();
  await rights.visit({ target: rights.other, origin: 'https://other.example' });
  const grant = { principalId: 'anna', purposes: ['device-identification'] };
  await rights.call('/v1/consent/grant', grant, secret);
  const token = await rights.as({ gpd_role: 'subject', gpd_visitor: visit.visitorId });
  await rights.call('/privacy/contest', { requestId: visit.requestId, statement: 'mine alone' }, token);
  const old = tempDir('old');
  await rights.sql('PRAGMA wal_checkpoint(TRUNCATE)');
  cpSync(join(rights.gpd.dataDir, 'gpd.db'), join(old, 'gpd.db'));

  expect((await rights.gpd.cli(['tenants', 'remove', KID])).code).toBe(2);
  const exportFolder = join(tempDir('export'), 'nobody');
  const nobody = await rights.gpd.cli(['tenants', 'remove', 'nobody', '--yes', '--export', exportFolder]);
  expect([nobody.code, existsSync(exportFolder)]).toEqual([3, false]);
  const planned = await rights.gpd.cli(['tenants', 'remove', KID, '--dry-run']);
  expect(planned).toMatchObject({ code: 0, stderr: expect.stringContaining('open contests (1)') });
  const out = join(tempDir('export'), 'acme');
  const headers = { authorization: `Bearer ${secret}` };
  const vkey = await ask(rights.gpd.url, '/v1/ledger/vkey', { headers });
  const removed = await rights.gpd.cli(['tenants', 'remove', KID, '--yes', '--export', out, '--json']);
  expect({ code: removed.code, stderr: removed.stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(removed.stdout)).toMatchObject({ kid: KID, removed: { decisions: 1, contests: 1 } });
  expect(readFileSync(join(out, 'decisions.ndjson'), 'utf8')).toContain(visit.requestId);
  expect(readFileSync(join(out, 'ledger_entries.ndjson'), 'utf8')).toContain('consent.granted');
  // Its key is destroyed, and the log verifies all the same, by Python and openssl alone.
  expect(readFileSync(join(out, 'vkey'), 'utf8')).toBe(vkey.text);
  const ok = expect.stringMatching(/^OK log of \d+ entries/) as string;
  expect(verifyExport(out)).toMatchObject({ status: 0, stdout: ok });
  const entries = join(out, 'ledger_entries.ndjson');
  const exported = readFileSync(entries, 'utf8');
  writeFileSync(entries, exported.replace('consent.granted', 'consent.expired'));
  expect(verifyExport(out)).toMatchObject({ status: 1, stderr: expect.stringMatching(/^FAILED entry: /) });
  writeFileSync(entries, exported.split('\n').slice(0, -2).join('\n'));
  expect(verifyExport(out)).toMatchObject({ status: 1, stderr: expect.stringMatching(/^FAILED size: /) });
  // gpd exports the decrypted contest text, because the key is destroyed with the tenant.
  const [contest = ''] = readFileSync(join(out, 'contests.ndjson'), 'utf8').split('\n');
  expect(JSON.parse(contest)).toMatchObject({ statement: 'mine alone' });
  expect(contest).not.toContain('sealed');
  for (const name of readdirSync(rights.gpd.dataDir)) {
    const path = join(rights.gpd.dataDir, name);
    if (!statSync(path).isFile()) continue;
    for (const text of [visit.requestId, visit.visitorId, 'mine alone'])
      expect(readFileSync(path).includes(text), `${text} in ${path}`).toBe(false);
  }
  await expect
    .poll(async () => (await post(rights.gpd.url, createBundle(rights.acme))).status, SEEN_WITHIN)
    .toBe(400);
  expectCore(await post(rights.gpd.url, createBundle(rights.other)), 'ok');
  expect(await rights.gpd.json(['consent', 'verify', OTHER])).toMatchObject({ ok: true });

  await rights.gpd.stop();
  const { dataDir } = rights.gpd;
  for (const name of ['gpd.db', 'gpd.db-wal', 'gpd.db-shm']) rmSync(join(dataDir, name), { force: true });
  cpSync(join(old, 'gpd.db'), join(dataDir, 'gpd.db'));
  const gpd = await startGpd({ dataDir });
  expect((await post(gpd.url, createBundle(rights.acme))).status).toBe(400);
  expectCore(await post(gpd.url, createBundle(rights.other)), 'ok');
  expect(existsSync(join(dataDir, 'erasures.log'))).toBe(true);
  expect(readFileSync(join(dataDir, 'gpd.db')).includes(visit.requestId)).toBe(false);
  await gpd.stop();
});

// Guards against: a tenant that got the kid of a removed one inherited the receipts and audit rows of its erasures.
it('a later tenant under the kid of a removed one has none of its erasures', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir };
  const gpd = async (...words: string[]) =>
    expect(await runGpd(words, { env }), words.join(' ')).toMatchObject({ code: 0 });
  await gpd('tenants', 'add', OTHER, '--origin', 'https://other.example');
  await gpd('consent', 'grant', KID, 'anna', 'device-identification');
  await gpd('erase', '--tenant', KID, '--principal', 'anna', '--yes');
  await gpd('tenants', 'remove', KID, '--yes');
  await gpd('tenants', 'add', KID, '--origin', 'https://shop.example');
  const server = await startGpd({ dataDir });
  await server.stop();
  expect(await execute(dataDir, 'SELECT * FROM erasures')).toEqual([]);
  expect(await execute(dataDir, "SELECT * FROM audit_log WHERE action = 'subject.erased'")).toEqual([]);
});
