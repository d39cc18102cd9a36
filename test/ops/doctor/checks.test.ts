import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { withClosing } from '../../../src/lib/collections.ts';
import { type DoctorContext, openContext } from '../../../src/ops/doctor/context-service.ts';
import { CHECKS, examine, type Report } from '../../../src/ops/doctor/doctor-service.ts';
import { Skipped } from '../../../src/ops/doctor/finding.ts';
import { runGpd } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { initGpd } from '../../support/server.ts';
import { NOW, ROWS, type Row } from './rows.ts';

/** Spoils a new installation in one way per check, and expects the check to find it, by the command where possible. */

/** Nothing listens there. */
const NO_SERVER = { GPD_PORT: '9' };

async function reportOf({
  sql = [],
  files,
  env,
  context,
}: Omit<Row, 'id' | 'status' | 'detail'>): Promise<Report> {
  const { dataDir } = await initGpd();
  if (sql.length > 0) await execute(dataDir, ...sql);
  files?.(dataDir);
  const environment = { GPD_DATA_DIR: dataDir, ...NO_SERVER, ...env };
  if (!context)
    return JSON.parse((await runGpd(['doctor', '--json'], { env: environment })).stdout) as Report;
  const opened = openContext(loadConfig({ environment }), { version: '0.1.0', now: NOW });
  return withClosing(opened, async (base: DoctorContext & { close(): Promise<void> }) =>
    examine({ ...base, ...context(base) }),
  );
}

const failureOf = (job: string, since: number): string =>
  `INSERT INTO job_failures VALUES ('${KID}', '${job}', ${since}, 'Error')`;

describe.concurrent('the checks of gpd doctor', () => {
  it.each(ROWS.map((row) => [row.id, row.status, row.detail, row] as const))(
    '%s: %s for %s',
    async (id, status, detail, row) => {
      const report = await reportOf(row);
      const found = report.checks.filter((check) => check.id === id && detail.test(check.detail));
      expect(found).toMatchObject([{ status }]);
      expect(report.ok).toBe(report.counts.fail === 0);
      for (const { status: result, remedy } of report.checks) {
        // A remedy is a sentence.
        if (result === 'warn' || result === 'fail') expect(remedy).toMatch(/^[A-Z].{8,}\.$/);
        else expect(remedy).toBeUndefined();
        // It can be copied: the tenant has its name.
        expect(remedy ?? '').not.toMatch(/\bKID\b/);
      }
    },
  );

  it('has a row here for every check, but for what only PostgreSQL can be asked', () => {
    const named = new Set(ROWS.map(({ id }) => id));
    const untestedIds = CHECKS.filter(({ id }) => !named.has(id)).map(({ id }) => id);
    expect(untestedIds).toEqual(['database.durability', 'database.exposure']);
    expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
  });

  it('counts each check once, by the worst that it found, and says what is so where it passes', async () => {
    const { checks, counts } = await reportOf({ sql: ["UPDATE seal_keys SET state = 'gone'"] });
    expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(CHECKS.length);
    for (const { id, title } of CHECKS.filter((check) => check.id === 'keys.age'))
      expect(checks).toContainEqual({ id, status: 'pass', detail: title });
    const notice = checks.filter(({ id }) => id === 'terms.notice');
    expect(notice.map(({ status }) => status)).toEqual(['fail', 'warn']);
  });

  it('skips what cannot be judged instead of passing it', async () => {
    const data = () => Promise.reject(new Skipped('gone'));
    const { checks } = await reportOf({ context: () => ({ data, tenants: data, jobTime: data }) });
    const passed = checks.filter(({ status }) => status === 'pass').map(({ id }) => id);
    expect(passed.filter((id) => /^(?:jobs|rights|tenants|keys|log|terms|consent)\./.test(id))).toEqual([]);
  });

  it('a check that breaks off fails alone, and quotes no message', async () => {
    const broken = () => Promise.reject(new Error('postgres://gpd:a-secret-word@db'));
    const { checks } = await reportOf({ context: () => ({ server: broken }) });
    expect(checks.filter(({ detail }) => detail.includes('broke off')).map(({ id }) => id)).toEqual([
      'server.health',
      'server.degraded',
    ]);
    expect(JSON.stringify(checks)).not.toContain('a-secret-word');
  });

  it('names five and counts the rest', async () => {
    const { checks } = await reportOf({ sql: Array.from({ length: 9 }, (_, i) => failureOf(`job-${i}`, 1)) });
    expect(checks.find(({ id }) => id === 'jobs.failing')?.detail).toMatch(/job-4.* and 4 more$/);
  });

  it('a job that failed a moment ago has the time of a few runs', async () => {
    const { checks } = await reportOf({ sql: [failureOf('job', Date.now() - 9 * 60_000)] });
    expect(checks.find(({ id }) => id === 'jobs.failing')?.status).toBe('skipped');
  });

  it.each([
    ['old', { at: NOW - 48 * 3_600_000, trusted: '' }],
    ['of another setting', { at: NOW, trusted: '10.0.0.1' }],
  ])('a note of strangers that is %s is no fault', async (_what, note) => {
    const { checks } = await reportOf({
      files: (dataDir) => writeFileSync(join(dataDir, 'stranger-forwarded'), JSON.stringify(note)),
    });
    expect(checks.find(({ id }) => id === 'proxies.trust')?.status).toBe('pass');
  });
});
