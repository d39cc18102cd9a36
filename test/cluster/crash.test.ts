import { beforeAll, describe, expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { INGEST } from '../support/expect.ts';
import { missingPostgres } from '../support/postgres.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { sized } from '../support/sized.ts';
import { describeWithTool } from '../support/tools.ts';
import { createCaller, inParallel } from './support/call.ts';
import { bearer, type Cluster, startCluster } from './support/cluster.ts';

/** Nodes that die and nodes that are taken out, in the middle of a load of verdicts, grants and withdrawals. */

const ROUNDS = sized('CLUSTER', 2, 20);
const OPERATIONS = sized('CLUSTER', 600, 2000);
const CONCURRENCY = 40;
const TIMEOUT_MS = 600_000;

interface Done {
  readonly kind: 'ingest' | 'grant' | 'withdraw';
  readonly status: number;
  readonly body: string;
  /** The answer; null where the connection broke. */
  readonly answer: { requestId?: string; seq?: number; hash?: string } | null;
}

describeWithTool('nodes that go', await missingPostgres(), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3 });
    return () => cluster.stop();
  });

  /** Runs the load through the balancer; `disturb` is called when a third of it was sent. */
  async function load(name: string, disturb: () => Promise<unknown>): Promise<Done[]> {
    const call = createCaller(CONCURRENCY);
    const disturbed: Promise<unknown>[] = [];
    const done = await inParallel(OPERATIONS, CONCURRENCY, async (i): Promise<Done> => {
      if (i === Math.floor(OPERATIONS / 3)) disturbed.push(disturb());
      const kind = (['ingest', 'grant', 'ingest', 'withdraw'] as const)[i % 4]!;
      const body = JSON.stringify(
        kind === 'ingest'
          ? createBundle(cluster.target)
          : { principalId: `${name}-${i}`, purposes: ['device-identification'] },
      );
      const path = kind === 'ingest' ? INGEST : `/v1/consent/${kind}`;
      const headers = kind === 'ingest' ? browserHeaders() : bearer(cluster.keys.secret);
      const reply = await call(cluster.url, { path, headers, body });
      const good = reply.status === 200 || reply.status === 201;
      return { kind, status: reply.status, body, answer: good ? (reply.json() as Done['answer']) : null };
    });
    await Promise.all(disturbed);
    call.close();
    return done;
  }

  async function expectNothingLost(done: readonly Done[]): Promise<void> {
    const requestIds = done.flatMap(({ answer }) => answer?.requestId ?? []);
    const decisions = await cluster.sql<{ request_id: string }>(
      'SELECT request_id FROM decisions WHERE request_id = ANY($1)',
      [requestIds],
    );
    expect(decisions).toHaveLength(requestIds.length);
    const entries = done.flatMap(({ answer }) => (answer?.hash === undefined ? [] : [answer]));
    const rows = await cluster.sql<{ hash: string }>(
      'SELECT hash FROM ledger_entries WHERE kid = $1 AND hash = ANY($2) AND seq = ANY($3)',
      [KID, entries.map(({ hash }) => hash), entries.map(({ seq }) => seq)],
    );
    expect(rows).toHaveLength(entries.length);
    expect(await cluster.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
    // Whole records or none.
    const [counts] = await cluster.sql<Record<string, string>>(
      `SELECT (SELECT count(*) FROM nonces) AS nonces, (SELECT count(*) FROM decisions) AS decisions,
        (SELECT sum(seen) FROM sightings) AS seen`,
    );
    expect(new Set(Object.values(counts!).map(Number)).size).toBe(1);
  }

  describe('kill -9 of a node under load', () => {
    it(
      `loses nothing that was acknowledged, in ${ROUNDS} rounds`,
      async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const victim = cluster.nodes.at(-1)!;
          const done = await load(`kill ${round}`, () => victim.kill9());
          cluster.balancer.remove(victim.port);
          await expectNothingLost(done);
          const unanswered = done.filter(({ answer }) => answer === null);
          // A broken connection is all that a client may see.
          expect(unanswered.filter(({ status }) => status !== 502)).toEqual([]);
          expect(unanswered.length).toBeLessThanOrEqual(CONCURRENCY);
          // Asked again, it is done or was done; asked once more, it was done.
          const call = createCaller();
          for (const { kind, body } of unanswered) {
            if (kind !== 'ingest') continue;
            const again = await call(cluster.url, { path: INGEST, headers: browserHeaders(), body });
            expect([200, 409]).toContain(again.status);
            const third = await call(cluster.url, { path: INGEST, headers: browserHeaders(), body });
            expect(third.status).toBe(409);
          }
          call.close();
          await cluster.addNode();
        }
      },
      TIMEOUT_MS,
    );
  });

  describe('SIGTERM of a node under load', () => {
    it(
      'finishes what it took, and what it did not take can be asked again',
      async () => {
        const leaving = cluster.nodes.at(-1)!;
        const done = await load('drain', async () => {
          leaving.terminate();
          // A balancer that asks /readyz sends no further requests to this node; the node must answer the
          // open ones.
          cluster.balancer.remove(leaving.port);
          expect(await leaving.exited).toEqual({ code: 0, signal: null });
        });
        await expectNothingLost(done);
        // On a busy machine a connection may be so late with its request that the node has closed it: told above as a 502.
        const call = createCaller();
        for (const { kind, status, body } of done.filter(({ answer }) => answer === null)) {
          expect(status).toBe(502);
          const path = kind === 'ingest' ? INGEST : `/v1/consent/${kind}`;
          const headers = kind === 'ingest' ? browserHeaders() : bearer(cluster.keys.secret);
          expect([200, 201]).toContain((await call(cluster.url, { path, headers, body })).status);
        }
        call.close();
      },
      TIMEOUT_MS,
    );
  });

  it('the others were at no fault', () => {
    expect(cluster.faults()).toEqual([]);
  });
});
