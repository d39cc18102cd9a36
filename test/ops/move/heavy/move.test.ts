import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../src/config.ts';
import { sha256Text } from '../../../../src/lib/crypto.ts';
import { move } from '../../../../src/ops/move.ts';
import { addApiKey } from '../../../support/api-key.ts';
import { gpdJson, runGpd, tempDir } from '../../../support/command.ts';
import { KID } from '../../../support/constants.ts';
import { postJson } from '../../../support/http.ts';
import { missingPostgres, sharedPostgres } from '../../../support/postgres.ts';
import { browserHeaders } from '../../../support/samples.ts';
import { createBundle } from '../../../support/seal.ts';
import { startGpd } from '../../../support/server.ts';
import { describeWithTool } from '../../../support/tools.ts';

interface Moved {
  readonly rows: Readonly<Record<string, number>>;
  readonly logs: readonly { readonly kid: string; readonly size: number; readonly root: string }[];
}

/** Creates an installation with a verdict, a grant and a key. @returns its answers about them too */
async function createUsedInstallation() {
  const gpd = await startGpd();
  const key = await addApiKey(gpd);
  const [target] = gpd.targets;
  if (!target) throw new Error('no tenant');
  const { text } = await postJson(gpd.url, '/_fp/i/v1', createBundle(target), browserHeaders());
  const { requestId } = JSON.parse(text) as { requestId: string };
  await gpd.json(['consent', 'grant', KID, 'erika', 'device-identification']);
  const answers = await askAll(gpd.url, key, requestId);
  await gpd.stop();
  return { dataDir: gpd.dataDir, key, requestId, answers };
}

const authorised = (key: string) => ({ authorization: `Bearer ${key}` });

async function askAll(url: string, key: string, requestId: string): Promise<unknown[]> {
  const decision = await fetch(`${url}/v1/decisions/${requestId}`, { headers: authorised(key) });
  const check = { principalId: 'erika', purpose: 'device-identification' };
  const allowed = await postJson(url, '/v1/consent/can-process', check, authorised(key));
  // Left out, because it contains the port of the server.
  const { contestUrl: _, ...decided } = (await decision.json()) as Record<string, unknown>;
  return [decided, JSON.parse(allowed.text)];
}

const envOf = (dataDir: string, url?: string) => ({
  GPD_DATA_DIR: dataDir,
  ...(url === undefined ? {} : { GPD_DATABASE_URL: url }),
});

describeWithTool('gpd move', await missingPostgres(), () => {
  const createUrl = (): Promise<string> => sharedPostgres().freshUrl();

  it('takes everything to PostgreSQL and back, and the old database serves nobody', async () => {
    const { dataDir, key, requestId, answers } = await createUsedInstallation();
    const url = await createUrl();
    const there = await gpdJson<Moved>(['move', '--to', url], { env: envOf(dataDir) });
    expect(there.logs).toEqual([{ kid: KID, size: 3, root: expect.stringMatching(/^.{43}=$/) }]);
    expect(there.rows).toMatchObject({ decisions: 1, consent_openings: 1, ledger_entries: 3, api_keys: 1 });
    const password = new URL(url).password;
    expect(JSON.stringify(there)).not.toContain(password);

    const old = await runGpd(['tenants', 'list'], { env: envOf(dataDir) });
    expect([old.code, old.stderr]).toEqual([
      78,
      expect.stringContaining('the data was moved to postgres://'),
    ]);
    expect(old.stderr).not.toContain(password);
    const again = await runGpd(['move', '--to', url], { env: envOf(dataDir) });
    expect([again.code, again.stderr]).toEqual([
      7,
      expect.stringContaining('was already moved to postgres://'),
    ]);

    const moved = await startGpd({ dataDir, settings: { GPD_DATABASE_URL: url } });
    expect(await askAll(moved.url, key, requestId)).toEqual(answers);
    await moved.json(['consent', 'withdraw', KID, 'erika', 'device-identification']);
    const busy = await moved.cli(['move', '--to', join(tempDir('back'), 'gpd.db')]);
    expect([busy.code, busy.stderr]).toEqual([
      7,
      expect.stringMatching(/other connections to .*: stop the servers/),
    ]);
    await moved.stop();

    rmSync(join(dataDir, 'gpd.db'));
    const env = envOf(dataDir, url);
    const back = await gpdJson<Moved>(['move', '--to', join(dataDir, 'gpd.db')], { env });
    expect(back.logs[0]).toMatchObject({ kid: KID, size: 4 });
    const home = await startGpd({ dataDir });
    const [decision, allowed] = await askAll(home.url, key, requestId);
    expect([decision, allowed]).toMatchObject([answers[0], { allowed: false, reason: 'withdrawn' }]);
    expect(await home.json(['consent', 'verify', KID])).toMatchObject({ ok: true, size: 4 });
    await home.stop();
  });

  it('goes on after an interruption, also when the source served in between', async () => {
    const { dataDir, key, requestId, answers } = await createUsedInstallation();
    const url = await createUrl();
    const config = loadConfig({ environment: envOf(dataDir) });
    let rows = 0;
    const interrupted = move(config, url, () => {
      rows += 1;
      if (rows > 8) throw new Error('interrupted');
    });
    await expect(interrupted).rejects.toThrow('interrupted');
    const half = await runGpd(['tenants', 'list'], { env: envOf(dataDir, url) });
    expect([half.code, half.stderr]).toEqual([
      78,
      expect.stringContaining('was interrupted: repeat gpd move'),
    ]);
    const served = await startGpd({ dataDir });
    expect(await askAll(served.url, key, requestId)).toEqual(answers);
    await served.json(['tenants', 'set', KID, 'retention.days=31']);
    await served.json(['consent', 'withdraw', KID, 'erika', 'device-identification']);
    await served.stop();
    await gpdJson(['move', '--to', url], { env: envOf(dataDir) });
    const moved = await startGpd({ dataDir, settings: { GPD_DATABASE_URL: url } });
    expect((await askAll(moved.url, key, requestId))[1]).toMatchObject({ reason: 'withdrawn' });
    await moved.stop();
  });

  it('finishes when it was killed between its last two writes', async () => {
    const { dataDir } = await createUsedInstallation();
    const url = await createUrl();
    await gpdJson(['move', '--to', url], { env: envOf(dataDir) });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(`SELECT value FROM meta WHERE name = 'server-secret'`);
    expect(rows).toHaveLength(1);
    const source = sha256Text((rows[0] as { value: string }).value);
    await client.query(`INSERT INTO meta VALUES ('moving', $1)`, [source]);
    await client.end();
    expect((await runGpd(['tenants', 'list'], { env: envOf(dataDir, url) })).code).toBe(78);
    await gpdJson(['move', '--to', url], { env: envOf(dataDir) });
    expect(await gpdJson(['tenants', 'list'], { env: envOf(dataDir, url) })).toMatchObject([{ kid: KID }]);
  });

  it('refuses what it cannot fill, and changes nothing', async () => {
    const { dataDir } = await createUsedInstallation();
    const other = await createUsedInstallation();
    const url = await createUrl();
    await gpdJson(['move', '--to', url], { env: envOf(other.dataDir) });
    const full = await runGpd(['move', '--to', url], { env: envOf(dataDir) });
    expect([full.code, full.stderr]).toEqual([7, expect.stringContaining('already holds an installation')]);
    const refused = await runGpd(['move', '--to', join(tempDir('same'), 'gpd.db')], { env: envOf(dataDir) });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--to must be postgres://')]);
    const backup = join(tempDir('backups'), 'b');
    await gpdJson(['backup', backup], { env: envOf(dataDir) });
    const onto = await runGpd(['move', '--to', url, '--from', backup], { env: envOf(dataDir) });
    expect([onto.code, onto.stderr]).toEqual([7, expect.stringContaining('already holds an installation')]);
    const running = await startGpd({ dataDir });
    const inUse = await running.cli(['move', '--to', await createUrl()]);
    expect([inUse.code, inUse.stderr]).toEqual([7, expect.stringContaining('is in use')]);
    await running.stop();
    expect((await runGpd(['tenants', 'list'], { env: envOf(dataDir) })).code).toBe(0);
  });

  describe('a backup', () => {
    let installation: Awaited<ReturnType<typeof createUsedInstallation>>;
    let backup: string;
    beforeAll(async () => {
      installation = await createUsedInstallation();
      backup = join(tempDir('backups'), 'b');
      await gpdJson(['backup', backup], { env: envOf(installation.dataDir) });
    });

    it('of SQLite fills an empty PostgreSQL, and one of PostgreSQL an SQLite file', async () => {
      const url = await createUrl();
      await gpdJson(['move', '--to', url, '--from', backup], { env: envOf(installation.dataDir) });
      const onPostgres = await startGpd({
        dataDir: installation.dataDir,
        settings: { GPD_DATABASE_URL: url },
      });
      expect(await askAll(onPostgres.url, installation.key, installation.requestId)).toEqual(
        installation.answers,
      );
      const second = join(tempDir('backups'), 'c');
      // The server is still running.
      expect(await onPostgres.json(['backup', second])).toMatchObject({ verified: true });
      await onPostgres.json(['consent', 'grant', KID, 'later', 'device-identification']);
      await onPostgres.stop();

      rmSync(join(installation.dataDir, 'gpd.db'));
      await gpdJson(['restore', second], { env: envOf(installation.dataDir) });
      expect(existsSync(join(installation.dataDir, 'gpd.db'))).toBe(true);
      const onSqlite = await startGpd({ dataDir: installation.dataDir });
      expect(await askAll(onSqlite.url, installation.key, installation.requestId)).toEqual(
        installation.answers,
      );
      await onSqlite.stop();
    });

    it('replaces what PostgreSQL holds, all or nothing', async () => {
      const installation = await createUsedInstallation();
      const url = await createUrl();
      const second = join(tempDir('backups'), 'd');
      await gpdJson(['backup', second], { env: envOf(installation.dataDir) });
      await gpdJson(['move', '--to', url], { env: envOf(installation.dataDir) });
      const env = envOf(installation.dataDir, url);
      await gpdJson(['consent', 'grant', KID, 'late', 'device-identification'], { env });
      const unasked = await runGpd(['restore', second], { env });
      expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('--yes')]);
      await gpdJson(['restore', second, '--yes'], { env });
      const restored = await startGpd({ dataDir: installation.dataDir, settings: { GPD_DATABASE_URL: url } });
      expect(await askAll(restored.url, installation.key, installation.requestId)).toEqual(
        installation.answers,
      );
      const check = { principalId: 'late', purpose: 'device-identification' };
      const lateAnswer = await postJson(
        restored.url,
        '/v1/consent/can-process',
        check,
        authorised(installation.key),
      );
      expect(JSON.parse(lateAnswer.text)).toMatchObject({ allowed: false, reason: 'never-asked' });
      await restored.stop();
    });
  });
});
