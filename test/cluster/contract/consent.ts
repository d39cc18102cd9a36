import { describe, expect, it } from 'vitest';
import { expectCore, INGEST } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { browserHeaders } from '../../support/samples.ts';
import { makePlaintext, seal } from '../../support/seal.ts';
import type { Gpd } from '../../support/server.ts';
import { sized } from '../../support/sized.ts';
import { countBy, createCaller, inParallel } from '../support/call.ts';
import { bearer, type Cluster } from '../support/cluster.ts';

const ROUNDS = sized('CLUSTER', 25, 1000);
const PURPOSE = 'device-identification';
const TIMEOUT_MS = 300_000;
const NONCES = sized('CLUSTER', 50, 500);
const DUPLICATES = sized('CLUSTER', 60, 200);
const CONCURRENCY = 100;

interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly proof: { readonly seq: number };
}

/** Contract 7: a withdrawal answered 201 denies the very next check, on every node. */
export function consentContract(clusterOf: () => Cluster): void {
  describe('consent', () => {
    const call = createCaller();
    const as = (): Record<string, string> => bearer(clusterOf().keys.secret);
    const write = (base: string, action: string, principalId: string, headers = {}): Promise<Reply> =>
      call(base, {
        path: `/v1/consent/${action}`,
        headers: { ...as(), ...headers },
        body: { principalId, purposes: [PURPOSE] },
      });
    const ask = (base: string, principalId: string, minSeq?: number): Promise<Reply> =>
      call(base, {
        path: '/v1/consent/can-process',
        headers: as(),
        body: { principalId, purpose: PURPOSE, ...(minSeq === undefined ? {} : { minSeq }) },
      });
    const reasons = async (nodes: readonly Gpd[], principalId: string): Promise<string[]> => {
      const replies = await Promise.all(nodes.map((node) => ask(node.url, principalId)));
      return replies.map((reply) => (reply.json() as Decision).reason);
    };

    it(
      'a grant allows and a withdrawal denies the very next check on every node',
      async () => {
        const { nodes, url } = clusterOf();
        // Checks of the same people go on all the while: what a node remembered would be wrong soon.
        let running = true;
        let checkCount = 0;
        const busy = inParallel(8, 8, async () => {
          while (running) {
            const { status } = await ask(url, `round-${checkCount % ROUNDS}`);
            expect(status).toBe(200);
            checkCount += 1;
          }
        });
        const wrongReasons: string[] = [];
        for (let i = 0; i < ROUNDS; i += 1) {
          const principalId = `round-${i}`;
          const [granter, withdrawer] = [nodes[i % nodes.length]!, nodes[(i + 1) % nodes.length]!];
          expect((await write(granter.url, 'grant', principalId)).status).toBe(201);
          const granted = await reasons(nodes, principalId);
          expect((await write(withdrawer.url, 'withdraw', principalId)).status).toBe(201);
          const withdrawn = await reasons(nodes, principalId);
          if (granted.some((reason) => reason !== 'granted')) wrongReasons.push(`${i} ${granted.join()}`);
          if (withdrawn.some((reason) => reason !== 'withdrawn'))
            wrongReasons.push(`${i} ${withdrawn.join()}`);
        }
        running = false;
        await busy;
        expect(wrongReasons).toEqual([]);
      },
      TIMEOUT_MS,
    );

    it('does a write with one Idempotency-Key once, whichever nodes it reaches', async () => {
      const { url, nodes, sql } = clusterOf();
      const headers = { 'idempotency-key': 'once' };
      const replies = await inParallel(40, 20, () => write(url, 'grant', 'idempotent', headers));
      expect(countBy(replies, ({ status }) => status)).toEqual({ 201: 40 });
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
      const { seq, hash } = replies[0]!.json() as { seq: number; hash: string };
      const rows = await sql('SELECT hash FROM ledger_entries WHERE kid = $1 AND seq = $2', ['acme', seq]);
      expect(rows).toEqual([{ hash }]);
      for (const node of nodes) {
        const other = await write(node.url, 'withdraw', 'idempotent', headers);
        expect([other.status, (other.json() as { error: string }).error]).toEqual([
          409,
          'idempotency-conflict',
        ]);
      }
      expect(await reasons(nodes, 'idempotent')).toEqual(nodes.map(() => 'granted'));
    });
  });
}

/** Contract 3.1: the nonce is unique per tenant, whichever node it reaches. */
export function nonceContract(clusterOf: () => Cluster): void {
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
        expect(statuses).toEqual({ 200: NONCES, 409: NONCES * (DUPLICATES - 1) });
        const accepted = answers.filter(({ reply }) => reply.status === 200);
        expect(new Set(accepted.map(({ nonce }) => nonce)).size).toBe(NONCES);
        const reasons = countBy(answers, ({ reply }) => (reply.json() as { reason: string }).reason);
        expect(reasons).toEqual({ ok: NONCES, replay: NONCES * (DUPLICATES - 1) });
        answers
          .filter((_, i) => i % 97 === 0)
          .forEach(({ reply }) => void expectCore(reply, reply.status === 200 ? 'ok' : 'replay'));
        for (const { port } of nodes) {
          const answeredCount = (balancer.answered().get(port) ?? 0) - (before.get(port) ?? 0);
          expect(answeredCount).toBeGreaterThan(0);
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
