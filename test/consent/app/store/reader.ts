import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StateQuery } from '../../../../src/consent/state-store.ts';
import { createConsentStateReader } from '../../../../src/consent/state-store.ts';
import { listPolicies, publishPolicy, savePurposes } from '../../../../src/consent/terms-store.ts';
import type { Database } from '../../../../src/db/engine.ts';
import { inclusionProof, rootAt } from '../../../../src/ledger/merkle.ts';
import { putCheckpoint } from '../../../../src/log/checkpoint-store.ts';
import { createHashReader, readEntries, readHead } from '../../../../src/log/entries.ts';
import { createFirstPurpose } from '../../../../src/tenants/purposes.ts';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { operatorAt } from '../../../support/act.ts';
import { verifyInclusion } from '../../../support/log-reader.ts';
import { NOW } from '../../../support/make.ts';
import { leafOf, treeHead } from '../support/naive-log.ts';
import {
  addLog,
  allEntries,
  append,
  auditLog,
  createAppend,
  createAppender,
  macOf,
  PURPOSE,
} from './fixture.ts';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export function readerContract(make: MakeDatabase): void {
  describe('ConsentStateReader', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const query = (kid: string, principalId: string, purpose = PURPOSE): StateQuery => ({
      kid,
      principal: `ref-${principalId}`,
      purpose,
      mac: macOf(kid),
    });

    it('knows nothing of a stranger but the head of the log', async () => {
      const kid = await addLog(db.database, 'stranger');
      const entries = await allEntries(other, kid);
      expect(await createConsentStateReader(other).read(query(kid, 'x'))).toEqual({
        erased: false,
        gpc: false,
        event: null,
        head: { seq: 1, hash: entries[1]?.hash },
      });
    });

    it('answers each of 1,000 reads at once with its own, and a purpose never with another', async () => {
      const kid = await addLog(db.database, 'many');
      const appender = createAppender(db.database);
      const people = numbers(20).map((i) => `p${i}`);
      await Promise.all(
        people.map((principalId, i) =>
          append(appender, createAppend(kid, { principalId, choice: i % 2 === 0 ? 'granted' : 'denied' })),
        ),
      );
      const reader = createConsentStateReader(other);
      const queries = numbers(1000).map((i) => query(kid, `p${i % 25}`, i % 3 === 0 ? 'ads' : PURPOSE));
      const expected = numbers(1000).map((i) => {
        if (i % 3 === 0 || i % 25 >= 20) return undefined;
        return (i % 25) % 2 === 0 ? 'granted' : 'denied';
      });
      const states = await Promise.all(queries.map((one) => reader.read(one)));
      expect(states.map(({ event }) => event?.choice)).toEqual(expected);
      const all = await reader.readAll(queries.slice(0, 100));
      expect(all).toEqual(states.slice(0, 100));
    });

    it('readAll is one snapshot', async () => {
      const kid = await addLog(db.database, 'snapshot');
      const appender = createAppender(db.database);
      const [one] = createAppend(kid).entries;
      const entries = ['a', 'b', 'c'].map((purpose) => ({ ...one!, purpose }));
      const reader = createConsentStateReader(other);
      const heads = new Set<number>();
      let done = false;
      const writing = (async () => {
        for (let i = 0; i < 20; i += 1) await append(appender, createAppend(kid, { entries }));
        done = true;
      })();
      while (!done) {
        const states = await reader.readAll(['a', 'b', 'c'].map((purpose) => query(kid, 'anna', purpose)));
        const seqs = states.map(({ event }, i) => (event ? event.seq - i : -1));
        expect(new Set(seqs).size).toBe(1);
        expect(new Set(states.map(({ head }) => head.seq)).size).toBe(1);
        heads.add(states[0]?.head.seq ?? 0);
      }
      await writing;
      expect(heads.size).toBeGreaterThan(1);
    });
  });

  describe('reading a log', () => {
    let db: TestDatabase;
    let other: Database;
    const kid = 'read';
    let leaves: Buffer[];
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
      await addLog(db.database, kid);
      const appender = createAppender(db.database);
      await Promise.all(
        numbers(600).map((i) => append(appender, createAppend(kid, { principalId: `p${i % 50}` }))),
      );
      leaves = (await allEntries(other, kid)).map(({ entry }) => leafOf(entry));
    });
    afterAll(() => db.close());

    it('its head is the root of its entries', async () => {
      const head = await readHead(other, kid);
      expect(head).toMatchObject({ origin: 'gpd.example/ledger/read', size: 602, checkpoint: { size: 1 } });
      expect(head?.vkey).toMatch(/^gpd\.example\/ledger\/read\+[0-9a-f]{8}\+/);
      expect(head?.root.equals(treeHead(leaves))).toBe(true);
      expect(await readHead(other, 'nobody')).toBeNull();
    });

    it('entries come in their order, a page at a time', async () => {
      const page = await readEntries(other, kid, 250, 10);
      expect(page.map(({ seq }) => seq)).toEqual(numbers(10).map((i) => i + 250));
      expect((await readEntries(other, kid, 600, 10)).map(({ seq }) => seq)).toEqual([600, 601]);
      expect(await readEntries(other, kid, 602, 10)).toEqual([]);
      expect(await readEntries(other, 'nobody', 0, 10)).toEqual([]);
    });

    it('stored hashes prove entries, at this size and at earlier ones', async () => {
      const reader = createHashReader(other, kid);
      for (const size of [1, 2, 255, 256, 257, 512, 513, 602]) {
        const root = treeHead(leaves.slice(0, size));
        expect((await rootAt(size, reader)).equals(root)).toBe(true);
        for (const index of [0, Math.floor(size / 2), size - 1]) {
          const proof = await inclusionProof(index, size, reader);
          expect(verifyInclusion(index, size, leaves[index]!, proof, root)).toBe(true);
        }
      }
    });

    it('says so when hashes are missing, rather than prove with others', async () => {
      const reader = createHashReader(other, kid);
      await expect(reader.read(0, 600, 603)).rejects.toThrow(/lost/);
      await expect(reader.read(1, 2, 3)).rejects.toThrow(/lost/);
    });

    it('keeps the newest checkpoint, whatever order they come in', async () => {
      const signed = await addLog(db.database, 'signed');
      const save = async (database: Database, size: number) => {
        const read = (await readHead(database, signed))?.checkpoint ?? null;
        const checkpoint = { text: `checkpoint ${size}`, size, signedAt: NOW + size };
        return database.transaction((tx) => putCheckpoint(tx, signed, checkpoint, read));
      };
      expect(await save(db.database, 10)).toBe(true);
      expect(await save(other, 30)).toBe(true);
      expect(await save(db.database, 20)).toBe(false);
      expect((await readHead(other, signed))?.checkpoint).toEqual({
        text: 'checkpoint 30',
        size: 30,
        signedAt: NOW + 30,
      });
    });

    it('refuses a head that was altered', async () => {
      const altered = await addLog(db.database, 'altered');
      await db.database.transaction((tx) => tx('ledger_heads').where({ kid: altered }).update({ size: 1 }));
      await expect(readHead(other, altered)).rejects.toThrow(/altered/);
      await expect(createAppender(other).append(createAppend(altered))).rejects.toThrow(/altered/);
      expect(await allEntries(other, altered)).toHaveLength(2);
    });
  });

  describe('terms beside grants', () => {
    it('policies, purposes and grants from two nodes make one log', async () => {
      const db = await make();
      const other = await db.connect();
      const kid = await addLog(db.database, 'terms');
      const nodes = [db.database, other] as const;
      const appenders = nodes.map(createAppender);
      await Promise.all(
        numbers(30).flatMap((i) => {
          const node = nodes[i % 2] ?? db.database;
          const text = `policy ${i}`;
          const purpose = { ...createFirstPurpose(), id: `purpose-${i % 4}` };
          return [
            append(appenders[i % 2]!, createAppend(kid, { principalId: `p${i}` })),
            ...(i % 3 === 0
              ? [
                  publishPolicy(
                    node,
                    { kid, stateMac: macOf(kid) },
                    { text, material: i % 2 === 0 },
                    operatorAt(NOW),
                  ),
                ]
              : []),
            ...(i % 3 === 1
              ? [savePurposes(node, { kid, stateMac: macOf(kid) }, [purpose], operatorAt(NOW))]
              : []),
          ];
        }),
      );
      const policies = await listPolicies(other, kid);
      expect(policies.map(({ version }) => version)).toEqual(numbers(10).map((i) => i + 1));
      expect(new Set(policies.map(({ text }) => text)).size).toBe(10);
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
      expect(stored.size).toBe(52);
      await db.close();
    });
  });
}
