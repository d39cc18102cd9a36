import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { type Metric, otlpRequest } from '../../../src/ops/metrics/otlp.ts';
import { startOtlpPush } from '../../../src/ops/metrics/otlp-push.ts';
import { runGpd } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { expectCore, post } from '../../support/expect.ts';
import { makeBundle } from '../../support/seal.ts';
import { initGpd, startGpd } from '../../support/server.ts';

/** The JSON form of opentelemetry-proto's metrics.proto, as strict as a collector reads it. */

const nanos = z.string().regex(/^\d{19}$/);
const integer = z.string().regex(/^\d+$/);
const attributes = z.array(
  z.strictObject({ key: z.string().min(1), value: z.strictObject({ stringValue: z.string() }) }),
);
const times = { attributes, startTimeUnixNano: nanos, timeUnixNano: nanos };
const numbers = z.array(z.strictObject({ ...times, asDouble: z.number() }));
const histogram = z
  .strictObject({
    ...times,
    count: integer,
    sum: z.number(),
    bucketCounts: z.array(integer),
    explicitBounds: z.array(z.number()),
  })
  .refine(({ bucketCounts, explicitBounds }) => bucketCounts.length === explicitBounds.length + 1)
  .refine(({ bucketCounts, count }) => bucketCounts.reduce((sum, n) => sum + Number(n), 0) === Number(count));
const named = { name: z.string().min(1), description: z.string() };
const metric = z.union([
  z.strictObject({ ...named, gauge: z.strictObject({ dataPoints: numbers }) }),
  z.strictObject({
    ...named,
    sum: z.strictObject({
      aggregationTemporality: z.literal(2),
      isMonotonic: z.literal(true),
      dataPoints: numbers,
    }),
  }),
  z.strictObject({
    ...named,
    histogram: z.strictObject({ aggregationTemporality: z.literal(2), dataPoints: z.array(histogram) }),
  }),
]);
const requestSchema = z.strictObject({
  resourceMetrics: z.tuple([
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeMetrics: z.tuple([
        z.strictObject({
          scope: z.strictObject({ name: z.literal('gpd'), version: z.string() }),
          metrics: z.array(metric),
        }),
      ]),
    }),
  ]),
});

const context = { version: '1.2.3', instance: 'here', startedAt: 1_763_630_000_000, now: 1_763_630_060_000 };

function metricsOf(value: unknown): z.infer<typeof metric>[] {
  return requestSchema.parse(value).resourceMetrics[0].scopeMetrics[0].metrics;
}

describe('a registry as OTLP', () => {
  it('keeps names, labels and values; buckets are counted each for itself', async () => {
    const registry = new Registry();
    const registers = [registry];
    new Counter({ name: 'a_total', help: 'A.', labelNames: ['x'], registers }).labels('one').inc(3);
    new Gauge({ name: 'b', help: 'B.', registers }).set(-1.5);
    new Gauge({ name: 'c', help: 'C.', registers }).set(Number.NaN);
    const durations = new Histogram({
      name: 'd',
      help: 'D.',
      labelNames: ['x'],
      buckets: [1, 2, 4],
      registers,
    });
    for (const value of [0.5, 1, 3, 3, 9]) durations.labels('y').observe(value);
    durations.labels('z').observe(2);
    const told = metricsOf(otlpRequest((await registry.getMetricsAsJSON()) as Metric[], context));
    const at = { startTimeUnixNano: '1763630000000000000', timeUnixNano: '1763630060000000000' };
    const x = (stringValue: string): object[] => [{ key: 'x', value: { stringValue } }];
    expect(told).toEqual([
      {
        name: 'a_total',
        description: 'A.',
        sum: {
          aggregationTemporality: 2,
          isMonotonic: true,
          dataPoints: [{ attributes: x('one'), ...at, asDouble: 3 }],
        },
      },
      { name: 'b', description: 'B.', gauge: { dataPoints: [{ attributes: [], ...at, asDouble: -1.5 }] } },
      // NaN is no number of JSON.
      { name: 'c', description: 'C.', gauge: { dataPoints: [] } },
      {
        name: 'd',
        description: 'D.',
        histogram: {
          aggregationTemporality: 2,
          dataPoints: [
            {
              attributes: x('y'),
              ...at,
              count: '5',
              sum: 16.5,
              bucketCounts: ['2', '0', '2', '1'],
              explicitBounds: [1, 2, 4],
            },
            {
              attributes: x('z'),
              ...at,
              count: '1',
              sum: 2,
              bucketCounts: ['0', '1', '0', '0'],
              explicitBounds: [1, 2, 4],
            },
          ],
        },
      },
    ]);
  });
});

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function collector(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Got {
  readonly path: string | undefined;
  readonly type: string | undefined;
  readonly body: string;
}

function recording(into: Got[], status = 200): RequestListener {
  return (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      into.push({ path: request.url, type: request.headers['content-type'], body });
      response.writeHead(status, { location: '/elsewhere' }).end('{}');
    });
  };
}

describe('GPD_OTLP_ENDPOINT', () => {
  it('gets the metrics of a server, without a tenant, an id or an address in them', async () => {
    const got: Got[] = [];
    const endpoint = await collector(recording(got));
    const gpd = await startGpd({ settings: { GPD_OTLP_ENDPOINT: `${endpoint}/` } });
    const { visitorId } = expectCore(await post(gpd.url, makeBundle(gpd.targets[0]!)), 'ok');
    expect(await gpd.stop()).toMatchObject({ code: 0 });
    expect(got).toHaveLength(1);
    expect(got[0]).toMatchObject({ path: '/v1/metrics', type: 'application/json' });
    const text = got[0]?.body ?? '';
    const told = metricsOf(JSON.parse(text));
    const names = told.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        'gpd_requests_total',
        'gpd_request_seconds',
        'gpd_tenants',
        'process_cpu_seconds_total',
      ]),
    );
    const ingests = told.find(({ name }) => name === 'gpd_ingest_total');
    expect(ingests).toMatchObject({
      sum: {
        dataPoints: expect.arrayContaining([
          expect.objectContaining({
            asDouble: 1,
            attributes: [{ key: 'reason', value: { stringValue: 'ok' } }],
          }),
        ]),
      },
    });
    for (const secret of [KID, visitorId, '127.0.0.1', gpd.dataDir])
      expect(text).not.toContain(String(secret));
  });

  it('is off by default, and refused when it is no address', async () => {
    const { dataDir } = await initGpd();
    const wrong = await runGpd(['serve'], {
      env: { GPD_DATA_DIR: dataDir, GPD_OTLP_ENDPOINT: 'collector:4318' },
    });
    expect(wrong).toMatchObject({ code: 78 });
    expect(wrong.stderr).toContain('GPD_OTLP_ENDPOINT (otlp_endpoint in gpd.toml): an http or https URL');
  });

  it('that hangs holds up neither the server nor its end', { timeout: 40_000 }, async () => {
    const endpoint = await collector(() => {});
    const gpd = await startGpd({ settings: { GPD_OTLP_ENDPOINT: endpoint } });
    expectCore(await post(gpd.url, makeBundle(gpd.targets[0]!)), 'ok');
    const begun = performance.now();
    expect(await gpd.stop()).toMatchObject({ code: 0 });
    expect(performance.now() - begun).toBeLessThan(8000);
    expect(gpd.logs()).toMatch(/"event":"metrics-failed".*did not answer in time/);
  });
});

describe('the sender', () => {
  const registry = new Registry();
  new Gauge({ name: 'g', help: 'G.', registers: [registry] }).set(1);
  const deps = { registry, version: '1', clock: () => 1_763_630_000_000, everyMs: 20 };

  it('sends at every turn and once more at the end', async () => {
    const got: Got[] = [];
    const push = startOtlpPush(await collector(recording(got)), { ...deps, onFault: () => {} });
    await vi.waitFor(() => expect(got.length).toBeGreaterThan(2), 5000);
    await push.stop();
    const count = got.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(got).toHaveLength(count);
  });

  it.each([500, 302, 404])(
    'tells of %i once, follows nothing, and tells anew after a success',
    async (status) => {
      const got: Got[] = [];
      const faults: string[] = [];
      let now = status;
      const endpoint = await collector((request, response) => recording(got, now)(request, response));
      const push = startOtlpPush(endpoint, { ...deps, onFault: (error) => faults.push(String(error)) });
      const turns = async (more: number): Promise<void> => {
        const wanted = got.length + more;
        await vi.waitFor(() => expect(got.length).toBeGreaterThan(wanted), 5000);
      };
      await turns(3);
      expect(faults).toEqual([`Error: the collector answered ${status}`]);
      now = 200;
      await turns(2);
      now = status;
      await turns(3);
      await push.stop();
      expect(faults).toHaveLength(2);
      expect(new Set(got.map(({ path }) => path))).toEqual(new Set(['/v1/metrics']));
    },
  );
});
