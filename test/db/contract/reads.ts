import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Bindings, type HotTransaction, makeReads, runHot } from '../../../src/db/sql.ts';
import type { MakeDatabase, TestDatabase } from './database.ts';

/** Several reads as one step, or one after the other: the same answers. */

const TEXTS = ['it’s "quoted" \\ \n', '🐢\u2028', '', '1', 'null'];
const LARGEST = Number.MAX_SAFE_INTEGER;

export function readsContract(make: MakeDatabase): void {
  describe('reads that share a step', () => {
    let db: TestDatabase;
    beforeAll(async () => {
      db = await make();
      await db.database.transaction(async (tx) => {
        await tx.schema.createTable('words', (t) => {
          t.text('word').notNullable();
          t.bigInteger('n');
        });
        for (const [n, word] of TEXTS.entries()) await tx('words').insert({ word, n });
        await tx('words').insert({ word: 'none', n: null });
        await tx('words').insert({ word: 'large', n: LARGEST });
      });
    });
    afterAll(() => db.close());

    const read = makeReads(
      {
        about: { word: 'text' },
        sql: 'SELECT q.i AS i, w.word AS word, w.n AS n FROM q LEFT JOIN words w ON w.word = q.word ORDER BY q.i',
        columns: ['i', 'word', 'n'],
      },
      {
        about: { at_least: 'integer', at_most: 'integer' },
        sql: 'SELECT (SELECT SUM(w.n) FROM words w WHERE w.n BETWEEN q.at_least AND q.at_most) AS total FROM q',
        columns: ['total'],
      },
    );

    const kinds = ['transaction', 'hotTransaction'] as const;

    it.each(kinds)('answer texts, numbers and nothing as they are, in a %s', async (kind) => {
      const asked = [...TEXTS, 'none', 'missing', 'large'].map((word): Bindings => [word]);
      const answers = await db.database[kind]((tx: HotTransaction) => read(tx, asked, [[1, 3]]));
      expect(answers[0]).toEqual([
        ...TEXTS.map((word, n) => [n, word, n]),
        [5, 'none', null],
        [6, null, null],
        [7, 'large', LARGEST],
      ]);
      expect(Number(answers[1]?.[0]?.[0])).toBe(6);
      // The second time as a statement that is prepared.
      const again = await db.database[kind]((tx: HotTransaction) =>
        read(
          tx,
          [['1']],
          [
            [0, 0],
            [4, 4],
          ],
        ),
      );
      expect(again[0]).toEqual([[0, '1', 3]]);
      expect(again[1]?.map(([total]) => Number(total))).toEqual([0, 4]);
    });

    it.each(kinds)('answer nothing about nothing, in a %s', async (kind) => {
      expect(await db.database[kind]((tx: HotTransaction) => read(tx, [], []))).toEqual([[], []]);
      const [none, some] = await db.database[kind]((tx: HotTransaction) => read(tx, [], [[3, 3]]));
      expect([none, some?.map(([total]) => Number(total))]).toEqual([[], [3]]);
    });

    it.each(kinds)('see what the %s wrote before them', async (kind) => {
      const within = await db.database[kind](async (tx: HotTransaction) => {
        await runHot(tx, 'INSERT INTO words (word, n) VALUES (?, ?)', [`of ${kind}`, 9]);
        return read(tx, [[`of ${kind}`]], []);
      });
      expect(within[0]).toEqual([[0, `of ${kind}`, 9]]);
    });
  });
}
