import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { createLaterProgram } from '../support/program.ts';
import { initGpd } from '../support/server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const NEXT = '29991231_01_next.js';
const MIGRATION = `export const up = (knex) => knex.schema.createTable('next_table', (t) => void t.text('kid').primary());`;

describe.concurrent('gpd migrate', () => {
  it('has nothing to do after init', async () => {
    const { dataDir } = await initGpd();
    const env = { GPD_DATA_DIR: dataDir };
    expect(await gpdJson(['migrate'], { env })).toEqual({ applied: [], dryRun: false });
    expect((await runGpd(['migrate'], { env })).stdout).toMatch(/up to date/);
  });

  it('brings an older database up to date; --dry-run only says so', async () => {
    const { dataDir } = await initGpd();
    const env = { GPD_DATA_DIR: dataDir };
    const program = createLaterProgram({ [NEXT]: MIGRATION });
    expect(await gpdJson(['migrate', '--dry-run'], { env, program })).toEqual({
      applied: [NEXT],
      dryRun: true,
    });
    expect(await gpdJson(['migrate', '--dry-run'], { env, program })).toEqual({
      applied: [NEXT],
      dryRun: true,
    });
    expect(await gpdJson(['migrate'], { env, program })).toEqual({ applied: [NEXT], dryRun: false });
    expect(await execute(dataDir, 'SELECT count(*) AS n FROM next_table')).toEqual([{ n: 0 }]);
  });

  it('every command brings it up to date', async () => {
    const { dataDir } = await initGpd();
    const program = createLaterProgram({ [NEXT]: MIGRATION });
    await gpdJson(['tenants', 'list'], { env: { GPD_DATA_DIR: dataDir }, program });
    expect(await execute(dataDir, 'SELECT count(*) AS n FROM next_table')).toEqual([{ n: 0 }]);
  });

  it('does not touch what a newer gpd wrote', async () => {
    const { dataDir } = await initGpd();
    await execute(dataDir, "INSERT INTO knex_migrations (name, batch) VALUES ('29991231_01_later.js', 99)");
    for (const args of [
      ['migrate'],
      ['migrate', '--dry-run'],
      ['serve', '--port', '0'],
      ['tenants', 'list'],
    ]) {
      const ran = await runGpd(args, { env: { GPD_DATA_DIR: dataDir } });
      // With exit code 78, systemd does not restart the unit (RestartPreventExitStatus=78).
      expect(ran).toMatchObject({ code: 78, stdout: '' });
      expect(ran.stderr).toMatch(/newer gpd.*upgrade/);
      expect(ran.stderr.trim().split('\n')).toHaveLength(1);
    }
  });
});

it('gpd retention run does not follow a clock that is far ahead of the last server, but with --yes', async () => {
  const { dataDir } = await initGpd();
  const day = 86_400_000;
  const newest = Date.now() - 30 * day;
  const decided = Date.now() - 100 * day;
  await execute(
    dataDir,
    `INSERT INTO meta VALUES ('newest-time', '${newest}')`,
    `INSERT INTO decisions VALUES ('${KID}', 'req_1', ${decided}, 'human', NULL, '{}', 's', 'c')`,
  );
  const env = { GPD_DATA_DIR: dataDir };
  const decisions = () => execute(dataDir, 'SELECT count(*) AS n FROM decisions');
  const failed = await runGpd(['retention', 'run'], { env });
  expect(failed.code).toBe(0);
  expect(failed.stderr).toContain(new Date(newest + day).toISOString());
  expect(await decisions()).toEqual([{ n: 1 }]);
  const trusted = await runGpd(['retention', 'run', '--yes'], { env });
  expect(trusted).toMatchObject({ code: 0, stderr: '' });
  expect(await decisions()).toEqual([{ n: 0 }]);
  // The confirmed clock is stored, so the next run needs no --yes.
  expect(await runGpd(['retention', 'run'], { env })).toMatchObject({ code: 0, stderr: '' });
});

it('a damaged database is said to be one, and what to do', async () => {
  const dataDir = tempDir('data');
  writeFileSync(join(dataDir, 'gpd.db'), 'x'.repeat(8192));
  for (const args of [['status'], ['tenants', 'list'], ['serve', '--port', '0']]) {
    const ran = await runGpd(args, { env: { GPD_DATA_DIR: dataDir } });
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr.trim()).toMatch(
      /^gpd: the database is damaged: [^\n]*gpd restore[^\n]*\(SQLITE_NOTADB\)$/,
    );
  }
});

/** Runs `npm run gen` in a copy of the project. */
function generate(root: string, ...args: string[]) {
  const argv = ['--import', 'tsx', join(root, 'bin/gen/main.ts'), ...args];
  const { status, stderr } = spawnSync(process.execPath, argv, { cwd: root, encoding: 'utf8' });
  return { status, stderr };
}

describe('npm run gen', () => {
  it('names a page that is out of date and leaves it so; without --check it is written', () => {
    const copy = tempDir('copy');
    for (const part of ['bin', 'docs', 'package.json', 'src', 'tsconfig.json', 'views'])
      cpSync(join(ROOT, part), join(copy, part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    const page = join(copy, 'docs', 'errors.md');
    const right = readFileSync(page, 'utf8');
    writeFileSync(page, `${right} `);
    const { status, stderr } = generate(copy, '--check');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^docs\/errors\.md is out of date: .*\n$/);
    expect(readFileSync(page, 'utf8')).toBe(`${right} `);
    expect(generate(copy).status).toBe(0);
    expect(readFileSync(page, 'utf8')).toBe(right);
  });
});
