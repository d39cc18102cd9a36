import { describe, expect, it } from 'vitest';
import { parseExposition, quantile, sumByLabel, totalOf } from '../../../src/cli/top/exposition.ts';
import { topLines, viewOf, viewOfCounts } from '../../../src/cli/top/view.ts';
import { topText } from '../../../src/cli/ui/top.tsx';
import { createRouteLabel } from '../../../src/ops/metrics/route-label.ts';

describe('the label of a path', () => {
  const label = createRouteLabel(['/_fp/i/v1', '/v1/decisions/{requestId}', '/v1/consent/proofs/{seq}']);

  it.each([
    ['/_fp/i/v1', '/_fp/i/v1'],
    ['/v1/decisions/req_01ABC', '/v1/decisions/{requestId}'],
    ['/v1/consent/proofs/41', '/v1/consent/proofs/{seq}'],
    ['/v1/decisions/a/b', 'other'],
    ['/v1/ledger/tile/0/x001', '/v1/ledger/tile/'],
    ['/ledger/shop/checkpoint', '/ledger/'],
    ['/', 'other'],
    ['/wp-admin?x=1', 'other'],
    ['/_fp/i/v1/', 'other'],
  ])('%s is %s', (path, expected) => {
    expect(label(path)).toBe(expected);
  });
});

const text = (requests: number, ok: number, slow: number): string => `# HELP gpd_requests_total Requests.
# TYPE gpd_requests_total counter
gpd_requests_total{route="/_fp/i/v1",status="200"} ${requests}
gpd_requests_total{route="/_fp/i/v1",status="503"} ${slow}
gpd_request_seconds_bucket{le="0.01",route="/_fp/i/v1"} ${requests}
gpd_request_seconds_bucket{le="0.1",route="/_fp/i/v1"} ${requests + slow}
gpd_request_seconds_bucket{le="+Inf",route="/_fp/i/v1"} ${requests + slow}
gpd_ingest_total{reason="ok"} ${ok}
gpd_verdicts_total{class="human"} ${ok}
gpd_batch_size_sum{group="record"} ${requests}
gpd_batch_size_count{group="record"} ${requests / 10}
gpd_batch_waiting{group="record"} 7
nodejs_eventloop_lag_p99_seconds 0.0125
gpd_ledger_entries 1234
process_resident_memory_bytes 98000000
`;

describe('what gpd top reads', () => {
  it('parses names, labels and values, and nothing else', () => {
    const samples = parseExposition('# x 1\na 1\nb{c="d",e="f \\" }"} 2.5e-3\nbroken{ 1\n\nb{c="d"} +Inf\n');
    expect(samples).toEqual([
      { name: 'a', labels: {}, value: 1 },
      { name: 'b', labels: { c: 'd', e: 'f \\" }' }, value: 0.0025 },
      { name: 'b', labels: { c: 'd' }, value: Number.NaN },
    ]);
    expect(sumByLabel(parseExposition(text(100, 90, 1)), 'gpd_requests_total', 'status')).toEqual({
      200: 100,
      503: 1,
    });
    expect(totalOf(samples, 'c')).toBeNull();
  });

  it.each([
    [{}, 0.5, null],
    [{ '0.1': 0, '+Inf': 0 }, 0.5, null],
    [{ '0.1': 10, '0.2': 10, '+Inf': 10 }, 0.5, 0.05],
    [{ '0.1': 5, '0.2': 10, '+Inf': 10 }, 0.9, 0.18],
    [{ '0.1': 0, '+Inf': 10 }, 0.99, 0.1],
  ])('of %j the quantile %d is %s', (buckets, q, expected) => {
    const found = quantile(buckets, q);
    if (expected === null) expect(found).toBeNull();
    else expect(found).toBeCloseTo(expected, 9);
  });

  it('tells what happened between two readings', () => {
    const before = { at: 1000, samples: parseExposition(text(100, 90, 0)) };
    const after = { at: 3000, samples: parseExposition(text(300, 250, 10)) };
    const view = viewOf(before, after);
    expect(view).toMatchObject({
      source: 'metrics',
      seconds: 2,
      requestsPerSecond: 105,
      errorsPerSecond: 5,
      verdictsPerSecond: 80,
      classes: { human: 160 },
      reasons: { ok: 160 },
      groups: [{ group: 'record', waiting: 7, meanSize: 10 }],
      eventLoopP99Ms: 12.5,
      ledgerEntries: 1234,
    });
    expect(view.routes[0]?.p50Ms).toBeCloseTo(5.25, 6);
    expect(topText(view).join('\n')).toMatch(
      /verdicts +80\.0 a second[\s\S]*ROUTE[\s\S]*\/_fp\/i\/v1 +105\.0[\s\S]*GROUP[\s\S]*record +10\.0 +7/,
    );
    // A server that was started anew counts from nothing.
    const restarted = { at: 4000, samples: parseExposition(text(20, 10, 0)) };
    expect(viewOf(after, restarted)).toMatchObject({ requestsPerSecond: 20, verdictsPerSecond: 10 });
  });

  it('says nothing where nothing is known, and never NaN', () => {
    const nothing = { at: 5, samples: [] };
    for (const view of [
      viewOf(nothing, nothing),
      viewOfCounts({ ledgerEntries: 0, webhooksWaiting: 0 }, { lastMinute: 0, byClass: {} }),
    ]) {
      expect(JSON.stringify(topLines(view).facts)).not.toMatch(/NaN|Infinity|undefined|null/);
    }
  });

  it('without metrics, says what to set, and has no line of dashes', () => {
    const counts = viewOfCounts(
      { ledgerEntries: 2, webhooksWaiting: 0 },
      { lastMinute: 6, byClass: { bot: 6 } },
    );
    const lines = topText(counts).join('\n');
    expect(lines).toMatch(
      /^verdicts +0\.1 a second\nclasses +bot 100 %\nlogs +2 entries\nwebhooks +0 waiting\n\n/,
    );
    expect(lines).toContain('GPD_METRICS_LISTEN=127.0.0.1:9090');
    expect(lines).not.toContain('–');
  });
});
