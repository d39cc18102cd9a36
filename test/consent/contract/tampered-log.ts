import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createNoteSigner, signCheckpoint } from '../../../src/ledger/note.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { createCheckpointBook } from '../../../src/log/checkpoint-files.ts';
import { NotSigned } from '../../../src/log/checkpoint-service.ts';
import { newestCheckpoint, thinCheckpoints } from '../../../src/log/checkpoint-store.ts';
import { readHead } from '../../../src/log/entries-store.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';
import { forgedEntries, forgedRows } from './forged-entries.ts';
import { logsOf, SECRET } from './log-node.ts';
import { tamperedRows } from './tampered-rows.ts';

/** An attacker here writes the database and has no key. */
export function tamperedLogContract(make: MakeDatabase): void {
  describe('a log that somebody rewrote without its keys', () => {
    const { db, other } = twoNodes(make);
    const logs = logsOf(db, other);
    const { createNode, createLog, write, definePurpose, rollBack } = logs;

    it('with entries taken off its end is signed no more, and verify says so', async () => {
      const kid = 'rolled-back';
      const node = await createLog(kid);
      await rollBack(kid, 5);
      await expect(node.sign()).rejects.toMatchObject({ problem: 'checkpoint-not-extended', status: 503 });
      expect(await node.codes()).toContain('checkpoint-not-extended');
      // Nor when as many other entries were put in their place.
      await definePurpose(kid);
      await definePurpose(kid);
      await expect(node.sign()).rejects.toThrow(NotSigned);
      expect(await node.codes()).toContain('checkpoint-not-extended');
      expect(await newestCheckpoint(other, kid)).toBeNull();
    });

    it('is signed once an hour where nobody asks, and at once where somebody does', async () => {
      const kid = 'hourly';
      const node = await createLog(kid);
      const last = async () => (await node.book.all((await readHead(other, kid))?.vkey ?? '')).at(-1)?.size;
      await definePurpose(kid);
      await node.keep();
      expect(await last()).toBe(6);
      node.wait(HOUR);
      await node.keep();
      expect(await last()).toBe(7);
      const lines = readFileSync(node.file, 'utf8');
      node.wait(HOUR);
      await node.keep();
      // Nothing new, and no line for it.
      expect(readFileSync(node.file, 'utf8')).toBe(lines);
      expect(await other.read('checkpoints').where({ kid }).orderBy('size').pluck('size')).toHaveLength(3);
    });

    it('keeps of each log one checkpoint a day, those of the last day, and the last one', async () => {
      const kid = 'thinned';
      await createLog(kid);
      const signer = createNoteSigner(`gpd.example/ledger/${kid}`, Buffer.alloc(32, 8));
      const book = createCheckpointBook(tempDir('thin'), SECRET, 1);
      const day = Math.floor(NOW / DAY) * DAY;
      const times = [day - 9 * DAY, day - 9 * DAY + 1, day - 9 * DAY + 2, day - 5 * DAY, day, day + 1];
      let last = null;
      for (const [i, at] of times.entries()) {
        const text = signCheckpoint(i + 1, Buffer.alloc(32, i), signer);
        expect(await book.keep({ kid, vkey: signer.vkey, text, signedAt: at }, last)).toBe(true);
        last = await book.last(signer.vkey);
        await write((tx) => tx('checkpoints').insert({ kid, size: 100 + i, at, note: text }));
      }
      expect(await book.keep({ kid, vkey: signer.vkey, text: 'late', signedAt: NOW }, null)).toBe(false);
      await book.thin(day + 2);
      expect((await book.all(signer.vkey)).map(({ size }) => size)).toEqual([1, 4, 5, 6]);
      await thinCheckpoints(db.database, day + 2);
      const rows = await other
        .read('checkpoints')
        .where({ kid })
        .where('size', '>=', 100)
        .orderBy('size')
        .pluck('size');
      expect(rows.map(Number)).toEqual([102, 103, 104, 105]);
    });

    it.each<[string, (file: string) => void]>([
      ['is missing', (file) => rmSync(file)],
      ['is empty', (file) => writeFileSync(file, '')],
      [
        'has a changed line',
        (file) => writeFileSync(file, readFileSync(file, 'utf8').replace('"at":"2', '"at":"1')),
      ],
      ['has a line of somebody else', (file) => appendFileSync(file, '{"v":1}\n')],
      [
        'is without its lock too',
        (file) => {
          for (const path of [file, `${file}.lock`]) rmSync(path);
        },
      ],
    ])('is not signed where checkpoints.log %s', async (damageTitle, damage) => {
      const kid = `file-${damageTitle.replaceAll(' ', '-')}`;
      const node = await createLog(kid);
      const whole = readFileSync(node.file);
      damage(node.file);
      // A node on PostgreSQL that was never there before begins with what the others signed.
      const begins = damageTitle.includes('lock') && db.database.kind === 'postgres';
      expect(await node.codes()).toEqual(begins ? [] : ['checkpoint-missing']);
      const after = createNode(kid, db.database, node.file.slice(0, -'/checkpoints.log'.length));
      if (begins) expect(await after.sign()).toMatchObject({ size: 6 });
      else await expect(after.sign()).rejects.toMatchObject({ problem: 'checkpoint-missing' });
      writeFileSync(node.file, whole);
      expect(
        await createNode(kid, db.database, node.file.slice(0, -'/checkpoints.log'.length)).codes(),
      ).toEqual([]);
    });

    it('is reported by every node by itself, and each keeps what the others signed', async () => {
      const kid = 'nodes';
      const first = await createLog(kid);
      if (db.database.kind !== 'postgres') return;
      const second = createNode(kid, other);
      await second.keep();
      expect(await second.codes()).toEqual([]);
      await definePurpose(kid, other);
      await second.sign();
      await first.keep();
      const { vkey } = (await readHead(other, kid)) ?? { vkey: '' };
      for (const { book } of [first, second]) expect((await book.last(vkey))?.size).toBe(7);
      await rollBack(kid, 5);
      for (const node of [first, second]) await expect(node.sign()).rejects.toThrow(NotSigned);
    });

    // Guards against: the log was read from its beginning for every checkpoint.
    it('reads for a checkpoint only what came since the last one', async () => {
      const kid = 'since';
      const node = await createLog(kid);
      await write((tx) => tx('ledger_entries').where({ kid, seq: 1 }).update({ mac: null }));
      await definePurpose(kid);
      expect((await node.sign())?.size).toBe((await readHead(other, kid))?.size);
      expect(await node.codes()).toEqual(['entry-unauthenticated']);
    });

    forgedEntries(logs);
  });
}

/** Verify reads rows and files; which database held the rows makes no difference to it. */
export function tamperedLogRules(make: MakeDatabase): void {
  describe('rows of a log that somebody changed without its keys', () => {
    const { db, other } = twoNodes(make);
    const logs = logsOf(db, other);
    tamperedRows(logs);
    forgedRows(logs);
  });
}
