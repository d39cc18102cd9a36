import { describe, expect, it } from 'vitest';
import { expectCore, INGEST } from '../../support/expect.ts';
import { browserHeaders } from '../../support/samples.ts';
import { makePlaintext, seal } from '../../support/seal.ts';
import { countBy, createCaller, inParallel } from '../support/call.ts';
import type { Cluster } from '../support/cluster.ts';
import { sized, tell } from '../support/size.ts';

const NONCES = sized(50, 500);
const DUPLICATES = sized(60, 200);
const CONCURRENCY = 100;
const TIMEOUT_MS = 300_000;

/** Contract 3.1: the nonce is unique per tenant, whichever node it reaches. */
export function nonceContract(name: string, clusterOf: () => Cluster): void {
  describe('nonces', () => {
    it(
      'accepts one of all duplicates that reach all nodes at once, and calls the rest a replay',
      async () => {
        const { url, target, balancer, nodes, sql } = clusterOf();
        // Half of the duplicates are sealed anew: it is the nonce that counts, not the bytes.
        const bundles = Array.from({ length: NONCES }, () => {
          const plaintext = makePlaintext();
          return [seal(target, plaintext), seal(target, plaintext)].map((bundle) => JSON.stringify(bundle));
        });
        const before = new Map(balancer.answered());
        const call = createCaller(CONCURRENCY);
        const answers = await inParallel(NONCES * DUPLICATES, CONCURRENCY, async (i) => {
          const nonce = Math.floor(i / DUPLICATES);
          const body = bundles[nonce]?.[i % 2];
          return { nonce, reply: await call(url, { path: INGEST, headers: browserHeaders(), body }) };
        });
        call.close();

        const statuses = countBy(answers, ({ reply }) => reply.status);
        tell(name, `nonces: ${answers.length} bundles of ${NONCES} nonces: ${JSON.stringify(statuses)}`);
        expect(statuses).toEqual({ 200: NONCES, 409: NONCES * (DUPLICATES - 1) });
        const accepted = answers.filter(({ reply }) => reply.status === 200);
        expect(new Set(accepted.map(({ nonce }) => nonce)).size).toBe(NONCES);
        const reasons = countBy(answers, ({ reply }) => (reply.json() as { reason: string }).reason);
        expect(reasons).toEqual({ ok: NONCES, replay: NONCES * (DUPLICATES - 1) });
        answers
          .filter((_, i) => i % 97 === 0)
          .forEach(({ reply }) => void expectCore(reply, reply.status === 200 ? 'ok' : 'replay'));
        for (const { port } of nodes) {
          const took = (balancer.answered().get(port) ?? 0) - (before.get(port) ?? 0);
          expect(took).toBeGreaterThan(answers.length / nodes.length / 2);
        }

        const requestIds = accepted.map(({ reply }) => (reply.json() as { requestId: string }).requestId);
        const rows = await sql<{ n: string; seen: string }>(
          `SELECT count(*) AS n, (SELECT sum(s.seen) FROM sightings s WHERE s.durable IN
          (SELECT durable FROM decisions WHERE request_id = ANY($1))) AS seen
         FROM decisions WHERE request_id = ANY($1)`,
          [requestIds],
        );
        expect(rows.map(({ n, seen: seenCount }) => [Number(n), Number(seenCount)])).toEqual([
          [NONCES, NONCES],
        ]);
      },
      TIMEOUT_MS,
    );
  });
}
