import { describe, expect, it, vi } from 'vitest';
import { KID } from '../../support/constants.ts';
import { INGEST } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { browserHeaders } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import type { Gpd, SealTarget } from '../../support/server.ts';
import { createCaller } from '../support/call.ts';
import { bearer, type Cluster } from '../support/cluster.ts';

export function changesContract(clusterOf: () => Cluster): void {
  describe('changes', () => {
    const call = createCaller();

    async function seenByAll(change: string, isSeen: (node: Gpd) => Promise<boolean>): Promise<void> {
      await Promise.all(
        clusterOf().nodes.map((node) =>
          vi.waitFor(async () => expect(await isSeen(node), change).toBe(true)),
        ),
      );
    }

    const ingest = (node: Gpd, target: SealTarget): Promise<Reply> =>
      call(node.url, { path: INGEST, headers: browserHeaders(), body: createBundle(target) });
    const reason = async (node: Gpd, target: SealTarget): Promise<string> =>
      ((await ingest(node, target)).json() as { reason: string }).reason;
    const pubkey = (node: Gpd, kid: string): Promise<Reply> =>
      call(node.url, { path: `/_fp/pubkey?kid=${kid}` });

    it('a rotated key is published by all, the old one still opens, and a destroyed one opens nowhere', async () => {
      const { json, nodes, target } = clusterOf();
      const rotated = await json<{ publicKey: string; generation: number }>(['keys', 'rotate', KID]);
      await seenByAll('keys rotate', async (node) =>
        (await pubkey(node, KID)).text.includes(rotated.publicKey),
      );
      const next = { kid: KID, publicKey: Buffer.from(rotated.publicKey, 'base64') };
      for (const node of nodes) {
        expect(await reason(node, next)).toBe('ok');
        expect(await reason(node, target)).toBe('ok');
      }
      await json(['keys', 'destroy', KID, String(rotated.generation - 1), '--yes']);
      await seenByAll('keys destroy', async (node) => (await reason(node, target)) === 'decrypt-failed');
      for (const node of nodes) expect(await reason(node, next)).toBe('ok');
    });

    it('a purpose and a policy of one node are taken by the others without a wait', async () => {
      const { keys, nodes } = clusterOf();
      for (const [i, definer] of nodes.entries()) {
        const purpose = `purpose-${i}`;
        const put = await call(definer.url, {
          method: 'PUT',
          path: '/v1/consent/purposes',
          headers: bearer(keys.operator),
          body: { purposes: [{ id: purpose, title: purpose, gpc: 'ignore' }] },
        });
        expect(put.status).toBe(200);
        const published = await call(definer.url, {
          path: '/v1/consent/policies',
          headers: bearer(keys.operator),
          body: { text: `policy ${i}`, material: false },
        });
        expect(published.status).toBe(201);
        const { version } = published.json() as { version: number };
        const checker = nodes[(i + 1) % nodes.length]!;
        const unasked = await call(checker.url, {
          path: '/v1/consent/can-process',
          headers: bearer(keys.secret),
          body: { principalId: 'nobody', purpose },
        });
        expect(unasked.json()).toMatchObject({ reason: 'never-asked' });
        const granter = nodes[(i + 2) % nodes.length]!;
        const granted = await call(granter.url, {
          path: '/v1/consent/grant',
          headers: bearer(keys.secret),
          body: { principalId: 'policy', purposes: [purpose], policyVersion: version },
        });
        expect(granted.status).toBe(201);
      }
    });

    it('a principal’s session opens on all nodes at once, and is over on all at once', async () => {
      const { keys, nodes } = clusterOf();
      const [first] = nodes;
      const principalId = 'session';
      const headers = bearer(keys.secret);
      const opened = await call(first!.url, { path: '/v1/sessions', headers, body: { principalId } });
      const { token } = opened.json() as { token: string };
      const state = (node: Gpd): Promise<Reply> =>
        call(node.url, { path: '/v1/consent/state', headers: bearer(token), body: { principalId } });
      for (const node of nodes) expect((await state(node)).status).toBe(200);
      const erased = await call(nodes.at(-1)!.url, {
        path: '/v1/principals/erase',
        headers: bearer(token),
        body: {},
      });
      expect(erased.status).toBe(200);
      for (const node of nodes) expect((await state(node)).status).toBe(401);
    });
  });
}
