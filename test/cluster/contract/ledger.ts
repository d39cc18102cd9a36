import { beforeAll, describe, expect, it } from 'vitest';
import { consistencyProof, type HashReader } from '../../../src/ledger/merkle.ts';
import { parseVkey, verifyCheckpoint } from '../../../src/ledger/note.ts';
import { formatTilePath, TILE_WIDTH } from '../../../src/ledger/tiles.ts';
import { verifyConsistency } from '../../../src/ledger/verify.ts';
import { leafOf, readCheckpoint, treeHead } from '../../consent/app/support/naive-log.ts';
import { KID } from '../../support/constants.ts';
import type { Gpd } from '../../support/server.ts';
import { sized } from '../../support/sized.ts';
import { createCaller, inParallel } from '../support/call.ts';
import { bearer, type Cluster } from '../support/cluster.ts';

const WRITES = sized('CLUSTER', 400, 10_000);
const PURPOSE = 'device-identification';
const TIMEOUT_MS = 300_000;

interface Row {
  readonly seq: string;
  readonly hash: string;
  readonly entry: string;
}

interface Acknowledged {
  readonly seq: number;
  readonly hash: string;
}

/** Contract 7, the ledger: one log a tenant, whoever writes. */
export function ledgerContract(clusterOf: () => Cluster): void {
  describe('the log under many writers', () => {
    const call = createCaller();
    const as = (): Record<string, string> => bearer(clusterOf().keys.secret);
    const acknowledged: Acknowledged[] = [];
    const notes: { readonly node: number; readonly text: string }[] = [];
    let rows: Row[] = [];

    async function writeOn(node: Gpd, prefix: string): Promise<void> {
      await inParallel(WRITES, 16, async (i) => {
        const body = { principalId: `${prefix}-${i % 50}`, purposes: [PURPOSE] };
        const path = `/v1/consent/${['grant', 'deny', 'withdraw'][i % 3]}`;
        const reply = await call(node.url, { path, headers: as(), body });
        if (reply.status !== 201) throw new Error(`${reply.status} ${reply.text}`);
        acknowledged.push(...(reply.json() as { entries: Acknowledged[] }).entries);
      });
    }

    beforeAll(async () => {
      const { nodes, json, sql } = clusterOf();
      let writing = true;
      // Checkpoints are taken from every node while all of them write.
      const watching = nodes.map(async ({ url }, node) => {
        while (writing) {
          const { status, text } = await call(url, { path: '/v1/ledger/checkpoint', headers: as() });
          if (status !== 200) throw new Error(`no checkpoint: ${status} ${text}`);
          notes.push({ node, text });
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      });
      await Promise.all([
        ...nodes.map((node, i) => writeOn(node, `writer-${i}`)),
        json(['consent', 'purposes', 'set', KID, 'extra', '--title', 'Extra']),
        json(['keys', 'rotate', KID, '--force']),
      ]);
      writing = false;
      await Promise.all(watching);
      rows = await sql<Row>('SELECT seq, hash, entry FROM ledger_entries WHERE kid = $1 ORDER BY seq', [KID]);
    }, TIMEOUT_MS);

    it('has every acknowledged entry once, at its place', () => {
      const { nodes } = clusterOf();
      expect(acknowledged).toHaveLength(WRITES * nodes.length);
      expect(new Set(acknowledged.map(({ seq }) => seq)).size).toBe(acknowledged.length);
      const lostEntries = acknowledged.filter(({ seq, hash }) => rows[seq]?.hash !== hash);
      expect(lostEntries).toEqual([]);
    });

    it('has no gap, and every hash is that of its entry', () => {
      expect(rows.map(({ seq }) => Number(seq))).toEqual(rows.map((_, i) => i));
      expect(rows.filter(({ hash, entry }) => leafOf(entry).toString('hex') !== hash)).toEqual([]);
    });

    it('verifies by the program’s own verification, with the root of a walk over the rows', async () => {
      const verified = await clusterOf().json(['consent', 'verify', KID]);
      const root = treeHead(rows.map(({ entry }) => leafOf(entry))).toString('base64');
      const expected = { size: rows.length, ok: true };
      expect(verified).toMatchObject(expected);
      expect([root, Buffer.from(root, 'base64').toString('hex')]).toContain(verified['root']);
    });

    it('every checkpoint of every node is signed and is the root of a beginning of this log', async () => {
      const { text } = await call(clusterOf().url, { path: '/v1/ledger/vkey', headers: as() });
      const key = parseVkey(text.trim())!;
      const leaves = rows.map(({ entry }) => leafOf(entry));
      expect(new Set(notes.map(({ node }) => node)).size).toBe(clusterOf().nodes.length);
      for (const note of new Set(notes.map((each) => each.text))) {
        expect(verifyCheckpoint(note, key)).toMatchObject({ ok: true });
        const { size, root } = readCheckpoint(note);
        expect(treeHead(leaves.slice(0, size)).toString('base64')).toBe(root);
      }
    });

    it('checkpoints of different nodes are consistent by proofs from the tiles of a third', async () => {
      const { nodes } = clusterOf();
      const newest = await call(nodes[0]!.url, { path: '/v1/ledger/checkpoint', headers: as() });
      const last = readCheckpoint(newest.text);
      // A log that grew since then still serves the tiles of this size.
      const reader = (base: string): HashReader => ({
        async read(level, start, end) {
          const index = Math.floor(start / TILE_WIDTH);
          const width = Math.min(
            TILE_WIDTH,
            Math.floor(last.size / TILE_WIDTH ** level) - index * TILE_WIDTH,
          );
          const path = formatTilePath({ level, index, width });
          const tile = await fetch(`${base}/v1/ledger/${path}`, { headers: as() });
          if (tile.status !== 200) throw new Error(`${path}: ${tile.status}`);
          const bytes = Buffer.from(await tile.arrayBuffer());
          return Array.from({ length: end - start }, (_, i) => {
            const at = (start - index * TILE_WIDTH + i) * 32;
            return bytes.subarray(at, at + 32);
          });
        },
      });
      const heads = [...new Set(notes.map(({ text }) => text))].map(readCheckpoint);
      expect(heads.length).toBeGreaterThan(1);
      for (const [i, head] of heads.entries()) {
        const third = nodes[i % nodes.length]!;
        const proof = await consistencyProof(head.size, last.size, reader(third.url));
        const roots = [head.root, last.root].map((root) => Buffer.from(root, 'base64'));
        expect(verifyConsistency(head.size, last.size, proof, roots[0]!, roots[1]!)).toBe(true);
      }
    });
  });
}
