import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openDatabase } from '../../src/db/engine.ts';
import { withClosing } from '../../src/lib/collections.ts';
import type { Report } from '../../src/ops/doctor/doctor-service.ts';
import { type Environment, gpdJson, type Ran, runGpd, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { dumpDatabase } from '../support/database.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { createOwn } from './support/own.ts';

/** Nothing listens there. */
const NO_SERVER = { GPD_PORT: '9' };

async function examine(dataDir: string, env: Environment = {}): Promise<{ ran: Ran; report: Report }> {
  const ran = await runGpd(['doctor', '--json'], { env: { GPD_DATA_DIR: dataDir, ...NO_SERVER, ...env } });
  return { ran, report: JSON.parse(ran.stdout) as Report };
}

const statusOf = ({ checks }: Report, id: string): string | undefined =>
  checks.find((check) => check.id === id)?.status;
const failed = ({ checks }: Report): string[] =>
  checks.filter(({ status }) => status === 'fail').map(({ id }) => id);

describe.concurrent('gpd doctor', () => {
  it('finds no fault in a new installation, changes nothing, and says what is still to do', async () => {
    const { dataDir, dump, json } = await createOwn();
    const before = await dump();
    const { ran, report } = await examine(dataDir);
    // The new tenant has no controller in its notice yet.
    expect(failed(report)).toEqual(['terms.notice']);
    expect(ran.code).toBe(1);
    expect(report.checks.length).toBeGreaterThanOrEqual(40);
    for (const id of ['oidc.issuer', 'data.backup', 'apikeys.use']) expect(statusOf(report, id)).toBe('warn');
    for (const id of ['master-key.fits', 'database.integrity', 'log.entries', 'keys.published']) {
      expect({ id, status: statusOf(report, id) }).toEqual({ id, status: 'pass' });
    }
    expect(await dump()).toEqual(before);
    const words = await runGpd(['doctor'], { env: { GPD_DATA_DIR: dataDir, ...NO_SERVER } });
    expect(words.stdout).toMatch(
      /warn +oidc\.issuer +people with an account.*\n.*GPD_OIDC_ISSUER.*GPD_OIDC_AUDIENCE/,
    );
    expect(words.stdout).toMatch(/\d+ checks: 1 fail/);
    await json(`tenants set ${KID} 'notice.controller=Shop Ltd' notice.contact=privacy@shop.example`);
    const passed = await examine(dataDir);
    expect(failed(passed.report)).toEqual([]);
    expect([passed.ran.code, passed.report.ok]).toEqual([0, true]);
  });

  it('--record stores when it ran and the counts, and nothing else', async () => {
    const { dataDir } = await createOwn();
    const env = { GPD_DATA_DIR: dataDir, ...NO_SERVER };
    const ran = await runGpd(['doctor', '--record', '--json'], { env });
    expect(ran.code).toBe(1);
    const file = join(dataDir, 'last-doctor');
    const { counts } = JSON.parse(ran.stdout) as Report;
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ at: expect.any(Number) as number, counts });
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600');
  });

  it('tells of a changed GPD_EPOCH_DAYS, as the start of the server does', async () => {
    const { dataDir } = await createOwn();
    const serve = async (days: string): Promise<string> => {
      const gpd = await startGpd({ dataDir, settings: { GPD_EPOCH_DAYS: days } });
      await gpd.stop();
      return gpd.logs();
    };
    const epochs = async (days: string): Promise<string | undefined> =>
      statusOf((await examine(dataDir, { GPD_EPOCH_DAYS: days })).report, 'identity.epochs');
    expect(await epochs('30')).toBe('skipped');
    expect(await serve('30')).not.toContain('epoch-days');
    expect(await epochs('30')).toBe('pass');
    expect(await epochs('7')).toBe('warn');
    expect(await serve('7')).toMatch(/"event":"epoch-days-changed","was":30,"now":7/);
    expect(await epochs('7')).toBe('warn');
    expect(await serve('7')).not.toContain('epoch-days');
  });

  it('tells no secret of a database that does not answer', async () => {
    const env = { GPD_DATABASE_URL: 'postgres://gpd:a-secret-word@127.0.0.1:1/gpd' };
    const { ran, report } = await examine(tempDir('data'), env);
    expect(failed(report)).toContain('database.reachable');
    expect(ran.stdout + ran.stderr).not.toContain('a-secret-word');
  });

  it('finds the running server, and strangers that send X-Forwarded-For', async () => {
    const gpd = await startGpd();
    const ask = () => examine(gpd.dataDir, { GPD_PORT: String(gpd.port) });
    const quiet = (await ask()).report;
    expect(statusOf(quiet, 'server.health')).toBe('pass');
    expect(statusOf(quiet, 'proxies.trust')).toBe('pass');
    const before = await dumpDatabase(gpd.dataDir);
    for (let i = 0; i < 20; i += 1) {
      await fetch(`${gpd.url}/healthz`, { headers: { 'x-forwarded-for': '203.0.113.7' } });
    }
    await vi.waitFor(() => expect(existsSync(join(gpd.dataDir, 'stranger-forwarded'))).toBe(true));
    const loud = await ask();
    expect(loud.ran.code).toBe(1);
    expect(statusOf(loud.report, 'proxies.trust')).toBe('fail');
    expect(loud.ran.stdout).not.toContain('203.0.113.7');
    expect(await dumpDatabase(gpd.dataDir)).toEqual(before);
    expect(readdirSync(gpd.dataDir)).toContain('stranger-forwarded');
    const named = await examine(gpd.dataDir, { GPD_TRUSTED_PROXIES: '127.0.0.1' });
    expect(statusOf(named.report, 'proxies.trust')).toBe('pass');
    await gpd.stop();
  });
});

describeWithTool('cli/doctor on PostgreSQL', await missingPostgres(), () => {
  async function createOnPostgres() {
    const dataDir = join(tempDir('data'), 'gpd-data');
    const env = { GPD_DATABASE_URL: await sharedPostgres().freshUrl() };
    await gpdJson(['init', '--tenant', KID, '--origin', ORIGIN], { env: { GPD_DATA_DIR: dataDir, ...env } });
    return { dataDir, env };
  }

  it('an empty database is named as one, without its password', async () => {
    const url = await sharedPostgres().freshUrl();
    const env = { GPD_DATA_DIR: tempDir('data'), GPD_DATABASE_URL: url };
    const { code, stderr } = await runGpd(['serve', '--port', '0'], { env });
    const { host, pathname } = new URL(url);
    expect({ code, stderr }).toMatchObject({
      code: 78,
      stderr: expect.stringContaining(`no gpd in postgres://${host}${pathname}:`) as string,
    });
  });

  it('finds no fault in a new installation, and skips what is about a file', async () => {
    const { dataDir, env } = await createOnPostgres();
    const { ran, report } = await examine(dataDir, env);
    // The PostgreSQL of the tests runs without fsync.
    expect(failed(report)).toEqual(['database.durability', 'terms.notice']);
    expect(ran.code).toBe(1);
    expect(statusOf(report, 'database.exposure')).toBe('pass');
    for (const id of ['database.integrity', 'data.database-file', 'data.backup']) {
      expect({ id, status: statusOf(report, id) }).toEqual({ id, status: 'skipped' });
    }
    expect(statusOf(report, 'log.entries')).toBe('pass');
  });

  it('warns of a PostgreSQL that logs parameters or leaves a standby behind', async () => {
    const { dataDir, env } = await createOnPostgres();
    const name = new URL(env.GPD_DATABASE_URL).pathname.slice(1);
    await withClosing(openDatabase({ location: env.GPD_DATABASE_URL }), async ({ read }) => {
      await read.raw(`ALTER DATABASE "${name}" SET log_min_duration_statement = '500'`);
      await read.raw(`ALTER DATABASE "${name}" SET synchronous_commit = 'local'`);
    });
    const { report } = await examine(dataDir, env);
    expect(statusOf(report, 'database.exposure')).toBe('warn');
    const durability = report.checks.filter(({ id }) => id === 'database.durability');
    expect(durability.map(({ status }) => status)).toEqual(['fail', 'warn']);
  });
});
