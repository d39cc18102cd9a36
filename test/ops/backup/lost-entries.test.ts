import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ownOf } from '../../cli/support/own.ts';
import { type Api, apiOf, startApi } from '../../consent/app/support/api.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { startGpd } from '../../support/server.ts';

/** Lost entries that a checkpoint covers: a restore reports them, and an operator must accept them before the log continues. */

async function again(api: Api): Promise<Api> {
  await api.stop();
  return apiOf(await startGpd({ dataDir: api.gpd.dataDir }), api.keys);
}

/** Runs a line on the installation. @returns its exit code, its messages and the value that it printed */
async function cli(api: Api, line: string) {
  const { code, stdout, stderr } = await ownOf(api.gpd.dataDir).gpd(`${line} --json`);
  return { code, stderr, json: stdout === '' ? {} : (JSON.parse(stdout) as Record<string, unknown>) };
}

/** Records a grant that a checkpoint covers. */
async function signed(api: Api, principalId: string): Promise<number> {
  const { seq } = await api.write('grant', { principalId });
  expect((await api.get(`/v1/consent/proofs/${seq}`)).status).toBe(200);
  return seq + 1;
}

it('a restore names the entries that are lost, and the log goes on; who kept a checkpoint can prove it', async () => {
  let api = await startApi();
  const { dataDir } = api.gpd;
  const backup = join(tempDir('backups'), 'b');
  const entries = await signed(api, 'anna');
  await api.gpd.json(['backup', backup]);
  const loss = { kid: KID, signed: await signed(api, 'bert'), entries };
  const notesFile = join(tempDir('kept'), 'notes');
  writeFileSync(notesFile, (await api.get('/v1/ledger/checkpoint')).text);
  await api.stop();

  const file = join(dataDir, 'checkpoints.log');
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.toString().replace('"v":1', '"v":2'));
  const refused = await cli(api, `restore ${backup} --yes`);
  expect(refused.code).toBe(78);
  expect(refused.stderr).toContain('checkpoints.log: line 1 was changed');
  writeFileSync(file, bytes);

  for (const flag of ['--dry-run', '--yes'])
    expect((await cli(api, `restore ${backup} ${flag}`)).json).toMatchObject({ lostEntries: [loss] });
  expect(readFileSync(file, 'utf8')).toContain('"lost":true');
  const whole = { code: 0, json: { ok: true, problems: [] } };
  expect(await cli(api, `consent verify ${KID}`)).toMatchObject(whole);
  api = apiOf(await startGpd({ dataDir }), api.keys);
  expect(await signed(api, 'carl')).toBe(entries + 1);
  await signed(api, 'dora');
  expect(await cli(api, `consent verify ${KID}`)).toMatchObject(whole);
  expect(await cli(api, `consent verify ${KID} --against ${notesFile}`)).toMatchObject({
    code: 1,
    json: { problems: [{ code: 'checkpoint-not-extended' }] },
  });
  await api.stop();

  // Another machine has no checkpoints.log, so its file begins with the restored log.
  const empty = ownOf(join(tempDir('data'), 'gpd-data'));
  const key = join(dataDir, 'master.key');
  expect(await empty.gpd(`restore ${backup} --key-file ${key}`)).toMatchObject({ code: 0 });
  expect(await empty.gpd(`consent verify ${KID}`)).toMatchObject({ code: 0 });
});

it('a lost checkpoints.log stops signing until an operator accepts it', async () => {
  let api = await startApi();
  await signed(api, 'anna');
  for (const name of ['checkpoints.log', 'checkpoints.log.lock']) rmSync(join(api.gpd.dataDir, name));
  api = await again(api);
  expect(await cli(api, `consent verify ${KID}`)).toMatchObject({
    code: 1,
    json: { problems: [{ code: 'checkpoint-missing' }] },
  });
  const { seq } = await api.write('grant', { principalId: 'bert' });
  const proofStatus = async (): Promise<number> => (await api.get(`/v1/consent/proofs/${seq}`)).status;
  const accept = (flag: string) => cli(api, `consent accept-loss ${KID} ${flag}`);
  expect(await proofStatus()).toBe(503);
  expect((await cli(api, `consent accept-loss ${KID}`)).code).toBe(2);
  expect((await cli(api, 'consent accept-loss nobody --yes')).code).toBe(3);
  expect((await accept('--dry-run')).json).toMatchObject({ accepted: true });
  expect(await proofStatus()).toBe(503);
  expect((await accept('--yes')).json).toMatchObject({ accepted: true, signed: null });
  expect((await accept('--yes')).json).toMatchObject({ accepted: false });
  expect(await proofStatus()).toBe(200);
  expect(await cli(api, `consent verify ${KID}`)).toMatchObject({ code: 0 });
  await api.stop();
});
