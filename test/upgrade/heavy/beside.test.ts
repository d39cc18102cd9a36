import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { gpdJson, runProgram, tempDir } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { post } from '../../support/expect.ts';
import { missingPostgres, sharedPostgres } from '../../support/postgres.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import { makeLaterProgram } from '../../support/program.ts';
import { makeBundle } from '../../support/seal.ts';
import { describeWithTool } from '../../support/tools.ts';

/** Several nodes on PostgreSQL, one after another: the old version serves while the next one migrates. */

/** What a next version may do to a table in use: a column without a value, an index, a table of its own. */
const MIGRATION = `
export async function up(knex) {
  await knex.schema.alterTable('decisions', (t) => {
    t.text('next_column').nullable();
    t.index(['kid', 'next_column']);
  });
  await knex.schema.createTable('next_table', (t) => {
    t.text('kid').primary();
  });
}
`;
const NEXT = '29991231_01_next.js';

describeWithTool('an upgrade beside a running server', await missingPostgres(), () => {
  const running: GpdProcess[] = [];
  afterAll(async () => {
    for (const gpd of running) await gpd.kill9();
  });

  it('the old one answers all through it and after it, and does not start again', async () => {
    const dataDir = join(tempDir('data'), 'gpd-data');
    const settings = { GPD_DATABASE_URL: await sharedPostgres().freshUrl() };
    const env = { GPD_DATA_DIR: dataDir, ...settings };
    const made = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID, '--origin', ORIGIN], {
      env,
    });
    const target = { kid: KID, publicKey: Buffer.from(made.publicKey, 'base64') };
    const old = await startProcess({ dataDir, settings });
    running.push(old);

    const seen = new Map<number, number>();
    let on = true;
    const load = Array.from({ length: 4 }, async () => {
      while (on) {
        const { status } = await post(old.url, makeBundle(target));
        seen.set(status, (seen.get(status) ?? 0) + 1);
      }
    });
    const answered = (): number => [...seen.values()].reduce((sum, count) => sum + count, 0);
    while (answered() < 20) await new Promise((resolve) => setTimeout(resolve, 20));
    const program = makeLaterProgram({ [NEXT]: MIGRATION });
    expect(await gpdJson(['migrate'], { env, program })).toEqual({ applied: [NEXT], dryRun: false });
    const then = answered();
    while (answered() < then + 20) await new Promise((resolve) => setTimeout(resolve, 20));
    // A write of the command line of the next version reaches the old server.
    await gpdJson(['consent', 'grant', KID, 'anna', 'device-identification'], { env, program });
    on = false;
    await Promise.all(load);
    expect([...seen.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    expect(seen.get(200)).toBeGreaterThan(30);
    process.stdout.write(`beside the migration: ${JSON.stringify(Object.fromEntries(seen))}\n`);
    await old.stop();

    const again = await runProgram(['serve', '--port', '0'], { env });
    expect(again).toMatchObject({ code: 78, stdout: '' });
    expect(again.stderr).toMatch(/newer gpd \(29991231_01_next\.js\): upgrade this one/);
    expect(await gpdJson(['consent', 'verify', KID], { env, program })).toMatchObject({ ok: true });
  });
});
