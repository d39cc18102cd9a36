import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { leafHash } from '../../../src/ledger/merkle.ts';
import { createNoteSigner, signCheckpoint } from '../../../src/ledger/note.ts';
import { sha256 } from '../../../src/lib/crypto.ts';
import { createCheckpointBook } from '../../../src/log/checkpoint-files.ts';
import {
  addCosignatures,
  listCosigned,
  newestCheckpoint,
  putCheckpoint,
} from '../../../src/log/checkpoint-store.ts';
import { appendEntries, createHashReader, lockHead, readHead } from '../../../src/log/entries-store.ts';
import { createLogService } from '../../../src/log/service.ts';
import { treeHead } from '../../consent/app/support/naive-log.ts';
import { macOf } from '../../consent/contract/consent-support.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';

const MACS = macOf('log');

function append(database: Database, kid: string, texts: readonly string[]) {
  const entries = texts.map((text) => Buffer.from(text));
  return database.transaction(async (tx) => {
    await lockHead(tx, kid);
    return appendEntries(tx, kid, entries, { macs: MACS });
  });
}

const texts = (n: number, prefix = 'entry'): string[] =>
  Array.from({ length: n }, (_, i) => `${prefix} ${i} ü`);
const leavesOf = (list: readonly string[]): Buffer[] => list.map((text) => leafHash(Buffer.from(text)));

export function ledgerContract(make: MakeDatabase): void {
  describe('ledger', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('keeps the roots of full blocks beside the leaves', async () => {
      const kid = await addTenant(db.database, 'blocks');
      const list = texts(600);
      await append(db.database, kid, list.slice(0, 255));
      await append(db.database, kid, list.slice(255, 256));
      await append(other, kid, list.slice(256));
      const reader = createHashReader(other, kid);
      const leaves = leavesOf(list);
      expect(await reader.read(0, 250, 260)).toEqual(leaves.slice(250, 260));
      expect(await reader.read(1, 0, 2)).toEqual([
        treeHead(leaves.slice(0, 256)),
        treeHead(leaves.slice(256, 512)),
      ]);
      await expect(reader.read(1, 0, 3)).rejects.toThrow('lost entries');
      await expect(reader.read(0, 599, 601)).rejects.toThrow('lost entries');
    });

    it('refuses to go on from a head row that was altered', async () => {
      const kid = await addTenant(db.database, 'altered');
      await append(db.database, kid, texts(3));
      await db.database.transaction((tx) => tx('ledger_heads').where({ kid }).update({ size: 2 }));
      await expect(append(other, kid, ['x'])).rejects.toThrow('altered');
      await expect(readHead(other, kid)).rejects.toThrow('altered');
    });

    it('keeps the newest checkpoint, whichever node signed last, and what two nodes got cosigned of it', async () => {
      const kid = await addTenant(db.database, 'checkpoints');
      await append(db.database, kid, texts(5));
      const [first, second] = [
        { text: 'of 3', size: 3, signedAt: 1 },
        { text: 'of 5', size: 5, signedAt: 2 },
      ];
      expect(await db.database.transaction((tx) => putCheckpoint(tx, kid, first, null))).toBe(true);
      expect(await other.transaction((tx) => putCheckpoint(tx, kid, second, first))).toBe(true);
      // Both had read the first one: the second of them signed in vain.
      for (const read of [first, second]) {
        const lateCheckpoint = { text: 'of 4', size: 4, signedAt: 3 };
        expect(await other.transaction((tx) => putCheckpoint(tx, kid, lateCheckpoint, read))).toBe(false);
      }
      expect(await newestCheckpoint(other, kid)).toEqual(second);
      const add = (node: Database, line: string, text = 'of 5'): Promise<void> =>
        addCosignatures(node, kid, { size: 5, text }, (lines) => [lines, line]);
      await Promise.all([add(db.database, 'a'), add(other, 'b'), add(other, 'c', 'another of 5')]);
      const [stored, ...newerRows] = await listCosigned(other, kid, 4);
      expect(newerRows).toEqual([]);
      expect(stored).toMatchObject(second);
      expect(['ab', 'ba']).toContain(stored?.lines);
      expect(await listCosigned(other, kid, 6)).toEqual([]);
    });

    it('tells one checkpoint a second, though two nodes sign at one moment', async () => {
      const kid = await addTenant(db.database, 'signed');
      await append(db.database, kid, texts(3));
      const signer = createNoteSigner(`gpd.example/ledger/${kid}`, randomBytes(32));
      await db.database.transaction((tx) => tx('ledger_heads').where({ kid }).update({ vkey: signer.vkey }));
      let go = (): void => {};
      const released = new Promise<void>((resolve) => {
        go = resolve;
      });
      // It has read and signed the log of 3 when the other node signs that of 5.
      let sign = (): void => {};
      const hasSigned = new Promise<void>((resolve) => {
        sign = resolve;
      });
      const slow: Database = {
        ...db.database,
        transaction(work) {
          sign();
          return released.then(() => db.database.transaction(work));
        },
      };
      const begin = { kid, vkey: signer.vkey, text: signCheckpoint(0, sha256(''), signer), signedAt: 0 };
      const nodeOf = async (database: Database, now: number) => {
        const book = createCheckpointBook(tempDir('book'), Buffer.alloc(32));
        await book.keep(begin, null);
        return createLogService({
          database,
          book,
          tenantOf: () => ({ signer, stateMac: MACS }),
          clock: () => now,
        });
      };
      const [here, there] = [await nodeOf(slow, 1_000_000), await nodeOf(other, 1_000_001)];
      const pendingCheckpoint = here!.checkpoint(kid);
      await hasSigned;
      await append(other, kid, texts(2, 'more'));
      const first = await there!.checkpoint(kid);
      go();
      expect(await pendingCheckpoint).toBe(first);
      expect(await newestCheckpoint(other, kid)).toMatchObject({ text: first, size: 5 });
    });
  });
}
