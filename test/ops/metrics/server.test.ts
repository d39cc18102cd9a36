import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseExposition, sumByLabel, totalOf } from '../../../src/cli/top/exposition.ts';
import { createMeters } from '../../../src/ops/metrics/meters-service.ts';
import { parseListen } from '../../../src/ops/metrics/metrics-service.ts';
import { INGEST_STATUS } from '../../../src/schema/responses.ts';
import { addApiKey } from '../../support/api-key.ts';
import { runGpd } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { expectCore, post } from '../../support/expect.ts';
import { openWire } from '../../support/http.ts';
import { createBundle } from '../../support/seal.ts';
import { type Gpd, initGpd, startGpd } from '../../support/server.ts';

/** Below the range of ephemeral ports. */
const PORT = 20_000 + (process.pid % 6000);
const METRICS = `http://127.0.0.1:${PORT}/metrics`;

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_METRICS_LISTEN: `127.0.0.1:${PORT}` } });
});
afterAll(() => gpd.stop());

const scrape = async (port = PORT): Promise<string> =>
  (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

it('counts bundles, classes, checks, routes and batches', async () => {
  const port = PORT + 6000;
  const gpd = await startGpd({ settings: { GPD_METRICS_LISTEN: `127.0.0.1:${port}` } });
  const key = await addApiKey(gpd);
  // Counters must exist before their first event: a rate over a missing series would not show that event.
  const before = sumByLabel(parseExposition(await scrape(port)), 'gpd_ingest_total', 'reason');
  expect(Object.keys(before).sort()).toEqual(Object.keys(INGEST_STATUS).sort());
  const bundle = createBundle(gpd.targets[0]!);
  expectCore(await post(gpd.url, bundle), 'ok');
  expectCore(await post(gpd.url, createBundle(gpd.targets[0]!, { clientTs: 0 })), 'stale');
  expectCore(await post(gpd.url, bundle), 'replay');
  const without = createBundle(gpd.targets[0]!, { consent: { purposes: [] } });
  expectCore(await post(gpd.url, without), 'consent-missing');
  const check = (): Promise<Response> =>
    fetch(`${gpd.url}/v1/consent/can-process`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ principalId: 'u-1', purpose: 'device-identification' }),
    });
  await expect.poll(async () => (await check()).status).toBe(200);
  await fetch(`${gpd.url}/v1/decisions/req_1`);
  const samples = parseExposition(await scrape(port));
  const answers = { stale: 1, ok: 1, replay: 1, 'consent-missing': 1 };
  expect(sumByLabel(samples, 'gpd_ingest_total', 'reason')).toEqual({ ...before, ...answers });
  expect(totalOf(samples, 'gpd_verdicts_total')).toBe(1);
  expect(sumByLabel(samples, 'gpd_consent_checks_total', 'reason')).toEqual({ 'never-asked': 1 });
  const routes = sumByLabel(samples, 'gpd_requests_total', 'route');
  expect(routes).toMatchObject({ '/_fp/i/v1': 4, '/v1/decisions/{requestId}': 1 });
  const series = samples.filter(
    ({ name, labels }) => name === 'gpd_requests_total' && labels['route'] === '/_fp/i/v1',
  );
  const statuses = new Set(series.map(({ labels }) => labels['status']));
  expect(statuses).toEqual(new Set(['200', '400', '409', '451']));
  expect(sumByLabel(samples, 'gpd_request_seconds_count', 'route')['/_fp/i/v1']).toBe(4);
  expect(sumByLabel(samples, 'gpd_batch_size_count', 'group')).toMatchObject({ record: 2, decide: 1 });
  expect(totalOf(samples, 'gpd_ledger_entries')).toBe(2);
  expect(totalOf(samples, 'gpd_tenants')).toBe(1);
  expect(totalOf(samples, 'nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  await gpd.stop();
});

describe('GET /metrics', () => {
  it('holds nothing of a person, a tenant or a caller, and only labels of closed sets', async () => {
    // Labels of verdicts appear with the first verdict.
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    for (let i = 0; i < 200; i += 1)
      await fetch(`${gpd.url}/probe-${i}/req_${i}`, { method: i % 2 ? 'GET' : 'PUT' });
    const text = await scrape();
    for (const word of [KID, 'probe-', 'u-1', '127.0.0.1', 'shop.example']) {
      expect({ word, found: text.includes(word) }).toEqual({ word, found: false });
    }
    const samples = parseExposition(text);
    expect(sumByLabel(samples, 'gpd_requests_total', 'route')['other']).toBeGreaterThanOrEqual(200);
    const names = new Set(
      samples.filter(({ name }) => name.startsWith('gpd_')).flatMap(({ labels }) => Object.keys(labels)),
    );
    const known = ['class', 'group', 'le', 'node', 'reason', 'result', 'route', 'status', 'version'];
    expect([...names].sort()).toEqual(known);
  });

  it('says nothing of a record of the doctor that gpd did not write', async () => {
    const file = join(gpd.dataDir, 'last-doctor');
    for (const text of ['', '{"at":1,"counts":{"fail":"KID"}}', '{"at":1e999}']) {
      writeFileSync(file, text);
      const answer = await scrape();
      expect(answer).not.toContain('gpd_doctor_checks{');
      expect(answer).toContain('\ngpd_last_doctor_timestamp_seconds 0\n');
    }
    rmSync(file);
  });

  it('a client that leaves is no answer', async () => {
    const leftCount = async (): Promise<number> =>
      sumByLabel(parseExposition(await scrape()), 'gpd_requests_total', 'status')['499'] ?? 0;
    const before = await leftCount();
    const wire = await openWire(gpd.port);
    wire.send(
      'POST /_fp/i/v1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    );
    await new Promise((resolve) => setTimeout(resolve, 100));
    wire.close();
    await expect.poll(leftCount).toBe(before + 1);
  });

  it('is on its own listener alone, and answers nothing else', async () => {
    expect((await fetch(`${gpd.url}/metrics`)).status).toBe(404);
    expect((await fetch(METRICS.replace('/metrics', '/healthz'))).status).toBe(404);
    const posted = await fetch(METRICS, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const head = await fetch(METRICS, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect((await fetch(METRICS)).headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  });

  it('gpd top reads it', async () => {
    const load = setInterval(() => void post(gpd.url, createBundle(gpd.targets[0]!)), 20);
    const view = await gpd.json<{ verdictsPerSecond: number }>(['top']);
    clearInterval(load);
    expect(view).toMatchObject({ source: 'metrics', routes: [{ route: '/_fp/i/v1' }] });
    expect(view.verdictsPerSecond).toBeGreaterThan(1);
    const words = await gpd.cli(['top', '--url', `http://127.0.0.1:${PORT}`]);
    expect(words.stdout).toMatch(/verdicts +[\d.]+ a second/);
    const failed = await gpd.cli(['top', '--url', 'http://127.0.0.1:9/metrics']);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
  });

  it('an address that is taken is 78', async () => {
    const { dataDir } = await initGpd();
    const env = { GPD_DATA_DIR: dataDir, GPD_METRICS_LISTEN: `127.0.0.1:${PORT}` };
    const ran = await runGpd(['serve', '--port', '0'], { env });
    expect(ran.code).toBe(78);
    expect(ran.stderr).toContain('EADDRINUSE');
  });

  it('an address is a host and a port', () => {
    expect(parseListen('[::1]:9100')).toEqual({ host: '::1', port: 9100 });
    expect(parseListen('metrics.internal:1')).toEqual({ host: 'metrics.internal', port: 1 });
    for (const text of ['', '9100', ':9100', '::1:9100', '127.0.0.1:99999', 'a b:1'])
      expect(() => parseListen(text), text).toThrow(/HOST:PORT/);
  });
});

describe('the dashboard', () => {
  it('asks for metrics that there are', async () => {
    const file = fileURLToPath(new URL('../../../docs/operate/grafana.json', import.meta.url));
    const { panels } = JSON.parse(readFileSync(file, 'utf8')) as {
      panels: { title: string; targets?: { expr: string }[] }[];
    };
    const exprs = panels.flatMap((panel) => (panel.targets ?? []).map(({ expr }) => expr));
    expect(exprs.length).toBeGreaterThanOrEqual(8);
    const scraped = await scrape();
    const offered = new Set(parseExposition(scraped).map(({ name }) => name));
    for (const metric of await createMeters().registry.getMetricsAsJSON()) offered.add(metric.name);
    // A metric without a sample yet has its type.
    for (const [, name = ''] of scraped.matchAll(/^# TYPE (\S+)/gm)) offered.add(name);
    const names = exprs.flatMap((expr) => expr.match(/\b(?:gpd|nodejs|process)_\w+/g) ?? []);
    expect(names.filter((name) => !offered.has(name))).toEqual([]);
  });
});
