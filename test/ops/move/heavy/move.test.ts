import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../../src/config.ts';
import { sha256Text } from '../../../../src/lib/crypto.ts';
import { move } from '../../../../src/ops/move-service.ts';
import { addApiKey } from '../../../support/api-key.ts';
import { type Ran, runGpd, tempDir } from '../../../support/command.ts';
import { KID } from '../../../support/constants.ts';
import { postJson } from '../../../support/http.ts';
import { missingPostgres, sharedPostgres } from '../../../support/postgres.ts';
import { browserHeaders } from '../../../support/samples.ts';
import { createBundle } from '../../../support/seal.ts';
import { type Gpd, startGpd } from '../../../support/server.ts';
import { describeWithTool } from '../../../support/tools.ts';

interface Moved {
  readonly rows: Readonly<Record<string, number>>;
  readonly logs: readonly { readonly kid: string; readonly size: number; readonly root: string }[];
}

const authorised = (key: string) => ({ authorization: `Bearer ${key}` });

/** An installation with a verdict, a grant and a key, in its file or in another database. */
async function createUsed() {
  const first = await startGpd();
  const key = await addApiKey(first);
  const bundle = createBundle(first.targets[0]!);
  const { text } = await postJson(first.url, '/_fp/i/v1', bundle, browserHeaders());
  const { requestId } = JSON.parse(text) as { requestId: string };
  await first.json(['consent', 'grant', KID, 'erika', 'device-identification']);
  const { dataDir } = first;
  const settingsOf = (url?: string) => (url === undefined ? {} : { GPD_DATABASE_URL: url });

  const mayProcess = async (url: string, principalId: string): Promise<unknown> => {
    const check = { principalId, purpose: 'device-identification' };
    return (await postJson(url, '/v1/consent/can-process', check, authorised(key))).json();
  };
  /** Returns what a server answers about the verdict and the grant. */
  const askAll = async ({ url }: Gpd): Promise<unknown[]> => {
    const decision = await fetch(`${url}/v1/decisions/${requestId}`, { headers: authorised(key) });
    // Left out, because it contains the port of the server.
    const { contestUrl: _, ...decided } = (await decision.json()) as Record<string, unknown>;
    return [decided, await mayProcess(url, 'erika')];
  };
  const answers = await askAll(first);
  await first.stop();

  const start = (url?: string): Promise<Gpd> => startGpd({ dataDir, settings: settingsOf(url) });
  const gpd = (line: string, url?: string) =>
    runGpd(line.split(' '), { env: { GPD_DATA_DIR: dataDir, ...settingsOf(url) } });
  return {
    dataDir,
    answers,
    askAll,
    mayProcess,
    start,
    gpd,
    async json<T = unknown>(line: string, url?: string): Promise<T> {
      const ran = await gpd(`${line} --json`, url);
      expect(ran).toMatchObject({ code: 0 });
      return JSON.parse(ran.stdout) as T;
    },
    async expectAnswers(url?: string): Promise<void> {
      const server = await start(url);
      expect(await askAll(server)).toEqual(answers);
      await server.stop();
    },
  };
}

function expectRefused(ran: Ran, code: number, message: string): void {
  expect(ran).toMatchObject({ code, stderr: expect.stringContaining(message) as string });
}

describeWithTool('gpd move', await missingPostgres(), () => {
  const createUrl = (): Promise<string> => sharedPostgres().freshUrl();

  it('takes everything to PostgreSQL and back, and the old database serves nobody', async () => {
    const mine = await createUsed();
    const url = await createUrl();
    const there = await mine.json<Moved>(`move --to ${url}`);
    expect(there.logs).toEqual([{ kid: KID, size: 3, root: expect.stringMatching(/^.{43}=$/) }]);
    expect(there.rows).toMatchObject({ decisions: 1, consent_openings: 1, ledger_entries: 3, api_keys: 1 });
    const { password } = new URL(url);
    expect(JSON.stringify(there)).not.toContain(password);

    const old = await mine.gpd('tenants list');
    expectRefused(old, 78, 'the data was moved to postgres://');
    expect(old.stderr).not.toContain(password);
    expectRefused(await mine.gpd(`move --to ${url}`), 7, 'was already moved to postgres://');

    const moved = await mine.start(url);
    expect(await mine.askAll(moved)).toEqual(mine.answers);
    await moved.json(['consent', 'withdraw', KID, 'erika', 'device-identification']);
    const busy = await moved.cli(['move', '--to', join(tempDir('back'), 'gpd.db')]);
    expect(busy.code).toBe(7);
    expect(busy.stderr).toMatch(/other connections to .*: stop the servers/);
    await moved.stop();

    const file = join(mine.dataDir, 'gpd.db');
    rmSync(file);
    const back = await mine.json<Moved>(`move --to ${file}`, url);
    expect(back.logs[0]).toMatchObject({ kid: KID, size: 4 });
    const home = await mine.start();
    const withdrawn = { allowed: false, reason: 'withdrawn' };
    expect(await mine.askAll(home)).toMatchObject([mine.answers[0], withdrawn]);
    expect(await home.json(['consent', 'verify', KID])).toMatchObject({ ok: true, size: 4 });
    await home.stop();
  });

  it('goes on after an interruption, also when the source served in between', async () => {
    const mine = await createUsed();
    const url = await createUrl();
    let rows = 0;
    const interrupted = move(loadConfig({ environment: { GPD_DATA_DIR: mine.dataDir } }), url, () => {
      rows += 1;
      if (rows > 8) throw new Error('interrupted');
    });
    await expect(interrupted).rejects.toThrow('interrupted');
    expectRefused(await mine.gpd('tenants list', url), 78, 'was interrupted: repeat gpd move');
    const source = await mine.start();
    expect(await mine.askAll(source)).toEqual(mine.answers);
    await source.json(['tenants', 'set', KID, 'retention.days=31']);
    await source.json(['consent', 'withdraw', KID, 'erika', 'device-identification']);
    await source.stop();
    await mine.json(`move --to ${url}`);
    const moved = await mine.start(url);
    expect((await mine.askAll(moved))[1]).toMatchObject({ reason: 'withdrawn' });
    await moved.stop();
  });

  it('finishes when it was killed between its last two writes', async () => {
    const mine = await createUsed();
    const url = await createUrl();
    await mine.json(`move --to ${url}`);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query(`SELECT value FROM meta WHERE name = 'server-secret'`);
    expect(rows).toHaveLength(1);
    const source = sha256Text((rows[0] as { value: string }).value);
    await client.query(`INSERT INTO meta VALUES ('moving', $1)`, [source]);
    await client.end();
    expect((await mine.gpd('tenants list', url)).code).toBe(78);
    await mine.json(`move --to ${url}`);
    expect(await mine.json('tenants list', url)).toMatchObject([{ kid: KID }]);
  });

  it('refuses what it cannot fill, and changes nothing', async () => {
    const [mine, other] = [await createUsed(), await createUsed()];
    const url = await createUrl();
    await other.json(`move --to ${url}`);
    const backup = join(tempDir('backups'), 'b');
    await mine.json(`backup ${backup}`);
    for (const flags of ['', ` --from ${backup}`])
      expectRefused(await mine.gpd(`move --to ${url}${flags}`), 7, 'already holds an installation');
    const file = join(tempDir('same'), 'gpd.db');
    expectRefused(await mine.gpd(`move --to ${file}`), 2, '--to must be postgres://');
    const running = await mine.start();
    expectRefused(await mine.gpd(`move --to ${await createUrl()}`), 7, 'is in use');
    await running.stop();
    await mine.expectAnswers();
  });

  it('a backup of SQLite fills an empty PostgreSQL, and one of PostgreSQL an SQLite file', async () => {
    const mine = await createUsed();
    const [first, second] = ['b', 'c'].map((name) => join(tempDir('backups'), name));
    await mine.json(`backup ${first}`);
    const url = await createUrl();
    await mine.json(`move --to ${url} --from ${first}`);
    const running = await mine.start(url);
    expect(await mine.askAll(running)).toEqual(mine.answers);
    expect(await mine.json(`backup ${second}`, url)).toMatchObject({ verified: true });
    await running.json(['consent', 'grant', KID, 'later', 'device-identification']);
    await running.stop();
    rmSync(join(mine.dataDir, 'gpd.db'));
    await mine.json(`restore ${second}`);
    expect(existsSync(join(mine.dataDir, 'gpd.db'))).toBe(true);
    await mine.expectAnswers();
  });

  it('a backup replaces what PostgreSQL holds, all or nothing', async () => {
    const mine = await createUsed();
    const url = await createUrl();
    const backup = join(tempDir('backups'), 'd');
    await mine.json(`backup ${backup}`);
    await mine.json(`move --to ${url}`);
    await mine.json(`consent grant ${KID} late device-identification`, url);
    expectRefused(await mine.gpd(`restore ${backup}`, url), 2, '--yes');
    await mine.json(`restore ${backup} --yes`, url);
    const restored = await mine.start(url);
    expect(await mine.askAll(restored)).toEqual(mine.answers);
    const neverAsked = { allowed: false, reason: 'never-asked' };
    expect(await mine.mayProcess(restored.url, 'late')).toMatchObject(neverAsked);
    await restored.stop();
  });
});
