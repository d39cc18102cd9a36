import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseExposition, type Sample } from '../../../src/cli/top/exposition.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { createOwn } from '../../cli/support/own.ts';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { startGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';

/** docs/operate/alerts.yml, fed with what a server answers to GET /metrics. */

const FILE = fileURLToPath(new URL('../../../docs/operate/alerts.yml', import.meta.url));
const RULES = readFileSync(FILE, 'utf8');
const matches = (pattern: RegExp): string[] => [...RULES.matchAll(pattern)].map(([, found = '']) => found);
const ALERTS = matches(/- alert: (\w+)/g);
/** Below the range from which the system takes the ports of clients. */
const PORT = 14_000 + (process.pid % 6000);

/** Later than the longest `for` of a rule. */
const EVALUATED = '3h';
const CONSTANT = '+0x180';

/** The series of one answer. In promtool the time begins at 0, so that a time of the past is a negative number. */
function seriesOf(samples: readonly Sample[], at: number): ReadonlyMap<string, string> {
  const ours = samples.filter(({ name }) => name.startsWith('gpd_'));
  return new Map(
    ours.map(({ name, labels, value }) => {
      const pairs = Object.entries({ ...labels, instance: 'node' });
      const named = pairs.map(([label, text]) => `${label}="${text}"`).join(',');
      const shown = name.endsWith('_timestamp_seconds') ? value - at / 1000 : value;
      return [`${name}{${named}}`, `${shown}${CONSTANT}`];
    }),
  );
}

interface Case {
  readonly series: ReadonlyMap<string, string>;
  readonly firing: readonly string[];
}

/** Asserts that exactly these alerts fire; a file of promtool's tests is YAML, and so is JSON. */
function expectFiring(cases: readonly Case[]): void {
  const folder = tempDir('alerts');
  copyFileSync(FILE, join(folder, 'alerts.yml'));
  const tests = cases.map(({ series, firing }) => ({
    interval: '1m',
    input_series: [...series].map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: EVALUATED,
        exp_samples: firing.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
      },
    ],
  }));
  // The default of promtool is each minute, which takes five times as long.
  const file = { rule_files: ['alerts.yml'], evaluation_interval: '5m', tests };
  writeFileSync(join(folder, 'tests.yml'), JSON.stringify(file));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'tests.yml'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect({ status, said: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, said: '' });
}

async function scrape(dataDir: string, port: number) {
  const gpd = await startGpd({ dataDir, settings: { GPD_METRICS_LISTEN: `127.0.0.1:${port}` } });
  const samples = parseExposition(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  const at = Date.now();
  await gpd.stop();
  return { samples, series: seriesOf(samples, at) };
}

type Scraped = Awaited<ReturnType<typeof scrape>>;
let well: Scraped;
let neglected: Scraped;

beforeAll(async () => {
  const [good, bad] = [await createOwn(), await createOwn()];
  for (const { gpd } of [good, bad]) {
    await gpd(`tenants set ${KID} 'notice.controller=Shop Ltd' notice.contact=a@shop.example`);
    expect((await gpd(`backup ${tempDir('backups')}`)).code).toBe(0);
  }
  expect((await good.gpd('doctor --record')).code).toBe(0);
  const now = Date.now();
  await execute(
    bad.dataDir,
    `UPDATE meta SET value = '{"at":${now - 2 * DAY},"bytes":1}' WHERE name = 'last-backup'`,
    `UPDATE seal_keys SET published_at = ${now - 400 * DAY}`,
    `INSERT INTO contests (kid, contest_id, request_id, filed_by, filed_at, due_at, status, version, class)
     VALUES ('${KID}', 'c', 'req_1', 'me', 1, ${now - HOUR}, 'open', 1, 'bot')`,
  );
  expect((await bad.gpd('doctor --record')).code).toBe(1);
  well = await scrape(good.dataDir, PORT);
  neglected = await scrape(bad.dataDir, PORT);
});

describe('docs/operate/alerts.yml', () => {
  it('asks for metrics that there are', () => {
    const offered = new Set(well.samples.map(({ name }) => name));
    // Both have their first sample later: with a request, and with a finished round of housekeeping.
    for (const name of ['gpd_requests_total', 'gpd_last_sweep_timestamp_seconds']) offered.add(name);
    const usedMetrics = matches(/expr: (.*)/g).flatMap((expr) => expr.match(/\bgpd_\w+/g) ?? []);
    expect(usedMetrics.length).toBeGreaterThanOrEqual(ALERTS.length);
    expect(usedMetrics.filter((name) => !offered.has(name))).toEqual([]);
  });

  it('names commands that there are', async () => {
    const commands = new Set(
      matches(/command: (.*)/g).flatMap((line) => line.match(/(?<![\w/-])gpd(?: [a-z]+)+/g) ?? []),
    );
    expect(commands.size).toBeGreaterThan(5);
    for (const command of commands) {
      const ran = await runGpd([...command.split(' ').slice(1), '--help']);
      expect(ran.stdout).toContain(`Usage: ${command}`);
    }
  });
});

const missing =
  spawnSync('promtool', ['--version']).status === 0 ? null : 'promtool is not installed (package prometheus)';

describeWithTool('the alerts, by promtool', missing, () => {
  it('are rules', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', FILE], { encoding: 'utf8' });
    expect({ status, said: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, said: '' });
  });

  it('are silent about a server that is well', () => {
    expectFiring([{ series: well.series, firing: [] }]);
  });

  it('fire for an overdue contest, an old backup, an old key and the doctor that fails for them', () => {
    const firing = ['GpdBackupOld', 'GpdContestsOverdue', 'GpdDoctorFails', 'GpdSealKeyOld'];
    expectFiring([{ series: neglected.series, firing }]);
  });

  it('fire each for its own reason', () => {
    const hoursAgo = (hours: number): string => `${-hours * 3600}${CONSTANT}`;
    const reasons: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      GpdFails: { 'gpd_requests_total{route="/x",status="503"}': '0+60x180' },
      GpdDiskFull: { gpd_disk_free_bytes: `5e8${CONSTANT}`, gpd_disk_size_bytes: `1e11${CONSTANT}` },
      GpdNotReady: { gpd_ready: `0${CONSTANT}` },
      GpdDegraded: { gpd_degraded: `1${CONSTANT}` },
      GpdStateInvalid: { gpd_consent_state_invalid_total: '0x170 1x10' },
      GpdLogFork: { 'gpd_cosignatures_total{result="fork"}': '0x170 1x10' },
      GpdBackupOld: { gpd_last_backup_timestamp_seconds: hoursAgo(31) },
      GpdDoctorFails: { 'gpd_doctor_checks{status="fail"}': `2${CONSTANT}` },
      GpdDoctorOld: { gpd_last_doctor_timestamp_seconds: hoursAgo(31) },
      GpdHousekeepingFails: { gpd_last_sweep_timestamp_seconds: hoursAgo(2) },
      GpdCheckpointOld: {
        gpd_newest_checkpoint_timestamp_seconds: hoursAgo(2),
        gpd_ledger_entries: '0+1x180',
      },
      GpdContestsOverdue: { gpd_contests_overdue: `1${CONSTANT}` },
      GpdErasuresIncomplete: { gpd_erasures_incomplete: `1${CONSTANT}` },
      GpdSealKeyOld: { gpd_oldest_seal_key_timestamp_seconds: hoursAgo(9000) },
      GpdWebhooksWait: { gpd_webhooks_waiting: `10001${CONSTANT}` },
      GpdWebhooksFailed: { gpd_webhooks_failed: `1${CONSTANT}` },
    };
    const labelled = (name: string): string =>
      name.includes('{') ? name.replace('}', ',instance="node"}') : `${name}{instance="node"}`;
    const cases = Object.entries(reasons).map(([name, change]) => {
      const changes = Object.entries(change).map(([series, values]) => [labelled(series), values] as const);
      return { series: new Map([...well.series, ...changes]), firing: [name] };
    });
    expectFiring([...cases, { series: new Map(), firing: ['GpdDown'] }]);
    expect([...Object.keys(reasons), 'GpdDown', 'GpdDatabaseAway'].sort()).toEqual([...ALERTS].sort());
  });

  it('a small volume with room is well', () => {
    const small = new Map(well.series)
      .set('gpd_disk_free_bytes{instance="node"}', `4e8${CONSTANT}`)
      .set('gpd_disk_size_bytes{instance="node"}', `8e8${CONSTANT}`);
    expectFiring([{ series: small, firing: [] }]);
  });

  it('fire for one of two nodes that is gone, and for a database that is away without ending another alert', () => {
    const until = (values: string) => `${values.replace(/[+-]0x180$/, '')}+0x60 _x120`;
    const both = new Map(well.series);
    for (const [name, values] of well.series)
      both.set(name.replace('instance="node"', 'instance="two"'), until(values));
    const away = new Map(neglected.series);
    const stock =
      /^gpd_(tenants|ledger|webhooks|database|contests|erasures|last_backup|last_sweep|newest|oldest)/;
    for (const [name, values] of neglected.series) if (stock.test(name)) away.set(name, until(values));
    expectFiring([
      { series: both, firing: ['GpdDown'] },
      {
        series: away,
        firing: ['GpdBackupOld', 'GpdContestsOverdue', 'GpdDatabaseAway', 'GpdDoctorFails'],
      },
    ]);
  });
});
