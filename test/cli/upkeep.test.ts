import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { generate } from '../../bin/gen/main.ts';
import { gpdJson, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { createLaterProgram } from '../support/program.ts';
import { createOwn, ownOf } from './support/own.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const NEXT = '29991231_01_next.js';
const MIGRATION = `export const up = (knex) => knex.schema.alterTable('meta', (t) => void t.text('next_column'));`;

describe.concurrent('gpd migrate', () => {
  it('has nothing to do after init', async () => {
    const { gpd, json } = await createOwn();
    expect(await json('migrate')).toEqual({ applied: [], dryRun: false });
    expect((await gpd('migrate')).stdout).toMatch(/up to date/);
  });

  it('brings an older database up to date, as every command does; --dry-run only says so', async () => {
    const program = createLaterProgram({ [NEXT]: MIGRATION });
    const [first, second] = [await createOwn(), await createOwn()];
    const migrate = (...flags: string[]) => gpdJson(['migrate', ...flags], { env: first.env, program });
    expect(await migrate('--dry-run')).toEqual({ applied: [NEXT], dryRun: true });
    expect(await migrate()).toEqual({ applied: [NEXT], dryRun: false });
    await gpdJson(['tenants', 'list'], { env: second.env, program });
    for (const { query } of [first, second])
      expect(await query('SELECT count(next_column) AS n FROM meta')).toEqual([{ n: 0 }]);
  });

  it('does not touch what a newer gpd wrote', async () => {
    const { gpd, query } = await createOwn();
    await query("INSERT INTO knex_migrations (name, batch) VALUES ('29991231_01_later.js', 99)");
    for (const line of ['migrate', 'migrate --dry-run', 'serve --port 0', 'tenants list']) {
      const ran = await gpd(line);
      // With exit code 78, systemd does not restart the unit (RestartPreventExitStatus=78).
      expect(ran).toMatchObject({ code: 78, stdout: '' });
      expect(ran.stderr).toMatch(/newer gpd.*upgrade/);
      expect(ran.stderr.trim().split('\n')).toHaveLength(1);
    }
  });
});

it('gpd retention run does not follow a clock that is far ahead of the last server, but with --yes', async () => {
  const { gpd, query } = await createOwn();
  const day = 86_400_000;
  const newest = Date.now() - 30 * day;
  const decided = Date.now() - 100 * day;
  await query(`INSERT INTO meta VALUES ('newest-time', '${newest}')`);
  await query(`INSERT INTO decisions VALUES ('${KID}', 'req_1', ${decided}, 'human', NULL, '{}', 's', 'c')`);
  const decisions = () => query('SELECT count(*) AS n FROM decisions');
  const failed = await gpd('retention run');
  expect(failed.code).toBe(0);
  expect(failed.stderr).toContain(new Date(newest + day).toISOString());
  expect(await decisions()).toEqual([{ n: 1 }]);
  const trusted = await gpd('retention run --yes');
  expect(trusted).toMatchObject({ code: 0, stderr: '' });
  expect(await decisions()).toEqual([{ n: 0 }]);
  // The confirmed clock is stored, so the next run needs no --yes.
  expect(await gpd('retention run')).toMatchObject({ code: 0, stderr: '' });
});

it('a damaged database is said to be one, and what to do', async () => {
  const dataDir = tempDir('data');
  writeFileSync(join(dataDir, 'gpd.db'), 'x'.repeat(8192));
  for (const line of ['status', 'tenants list', 'serve --port 0']) {
    const ran = await ownOf(dataDir).gpd(line);
    // Only the start would be repeated by systemd, which does not help.
    expect(ran).toMatchObject({ code: line.startsWith('serve') ? 78 : 1, stdout: '' });
    expect(ran.stderr.trim()).toMatch(
      /^gpd: the database is damaged: [^\n]*gpd restore[^\n]*\(SQLITE_NOTADB\)$/,
    );
  }
});

it('npm run gen names a page that is out of date and leaves it so; without --check it is written', () => {
  const copy = tempDir('copy');
  for (const part of ['docs', 'sdk'])
    cpSync(join(ROOT, part), join(copy, part), {
      recursive: true,
      filter: (path) => !/node_modules|\/(?:target|dist|\.venv)(?:\/|$)/.test(path.slice(ROOT.length)),
    });
  const page = join(copy, 'docs', 'errors.md');
  const right = readFileSync(page, 'utf8');
  writeFileSync(page, `${right} `);
  const checked = generate(copy, true);
  expect(checked.code).toBe(1);
  expect(checked.text).toMatch(/^docs\/errors\.md is out of date: .*\n$/);
  expect(readFileSync(page, 'utf8')).toBe(`${right} `);
  expect(generate(copy, false).code).toBe(0);
  expect(readFileSync(page, 'utf8')).toBe(right);
  expect(generate(copy, true)).toEqual({ code: 0, text: '' });
});
