import { beforeAll, describe, expect, it } from 'vitest';
import { INGEST } from '../support/expect.ts';
import type { Reply } from '../support/http.ts';
import { missingPostgres } from '../support/postgres.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { describeWithTool } from '../support/tools.ts';
import { type Call, createCaller, inParallel } from './support/call.ts';
import { type Cluster, startCluster } from './support/cluster.ts';

/** Contract 8: several nodes share the counters through the database. The windows are those of the clock's minutes. */

const WINDOW_MS = 60_000;
/** More than a burst takes, on a busy machine too. */
const BURST_MS = 12_000;
const CONSENT_POINTS = 300;

async function inOneWindow(): Promise<void> {
  const remainingMs = WINDOW_MS - (Date.now() % WINDOW_MS);
  if (remainingMs < BURST_MS) await new Promise((resolve) => setTimeout(resolve, remainingMs + 50));
}

describeWithTool('rate limits over nodes', await missingPostgres(), () => {
  let cluster: Cluster;
  const call = createCaller();
  beforeAll(async () => {
    cluster = await startCluster({
      // A new installation has the first limit; a test can reach the second.
      settings: { GPD_RATE_INGEST: '600/60', GPD_RATE_CONSENT: `${CONSENT_POINTS}/60` },
    });
    return () => cluster.stop();
  });

  async function burst(count: number, make: (i: number) => Call): Promise<Reply[]> {
    const replies = await inParallel(count, 40, (i) => call(cluster.url, make(i)));
    const answerCounts = [...cluster.balancer.answered().values()];
    expect(answerCounts.length).toBe(cluster.nodes.length);
    return replies;
  }

  function expectLimited(replies: readonly Reply[], points: number): void {
    const limited = replies.filter(({ status }) => status === 429);
    expect(replies.length - limited.length).toBe(points);
    for (const { headers } of limited) {
      const after = Number(headers['retry-after']);
      expect(Number.isInteger(after) && after >= 1 && after <= 60).toBe(true);
    }
  }

  describe('ingest, 600 in 60 s', () => {
    const from = (address: string, body: unknown = '{}'): Call => ({
      path: INGEST,
      headers: { ...browserHeaders(), 'x-forwarded-for': address },
      body,
    });

    it('lets 600 of a client through, whichever nodes they reach, and no other client pays', async () => {
      await inOneWindow();
      const replies = await burst(900, () => from('203.0.113.7'));
      expectLimited(replies, 600);
      const refused = replies.find(({ status }) => status === 429);
      expect(refused?.json()).toMatchObject({ error: 'rate-limited', reason: 'rate-limited' });
      for (const { url } of cluster.nodes) {
        expect((await call(url, from('203.0.113.7'))).status).toBe(429);
        expect((await call(url, from('203.0.113.8', createBundle(cluster.target)))).status).toBe(200);
      }
    });

    it('keeps the count when a node dies', async () => {
      await inOneWindow();
      const address = '203.0.113.9';
      expectLimited(await burst(650, () => from(address)), 600);
      const [first, ...otherNodes] = cluster.nodes;
      cluster.balancer.remove(first!.port);
      await first!.kill9();
      for (const { url } of otherNodes) expect((await call(url, from(address))).status).toBe(429);
      const later = await cluster.addNode();
      expect((await call(later.url, from(address))).status).toBe(429);
    });
  });
});
