import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../../src/db/db.ts';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { addLog, append, makeAppend, makeAppender, opens } from './fixture.ts';

const LOCK = 'FOR UPDATE';

export function twoNodesContract(make: MakeDatabase): void {
  describe('a log that two nodes write', () => {
    let db: TestDatabase;
    let there: Database;
    /** What is asked here, and what the lock of a head is told to. */
    let asked: string[] = [];
    let onLock = (): void => {};
    /** Before the commit of what is written there. */
    let onWritten = async (): Promise<void> => {};
    let here: Database;
    beforeAll(async () => {
      db = await make();
      const other = await db.connect();
      there = {
        ...other,
        hotTransaction: (work) =>
          other.hotTransaction(async (tx) => {
            const result = await work(tx);
            await onWritten();
            return result;
          }),
      };
      const note = ({ sql }: { sql: string }): void => {
        const [kind = 'other'] = /FOR UPDATE|WITH \w+/.exec(sql) ?? [];
        asked.push(kind);
        if (kind === LOCK) onLock();
      };
      here = {
        ...db.database,
        hotTransaction: (work) =>
          db.database.hotTransaction((tx) => {
            if ('on' in tx) tx.on('query', note);
            return work(tx);
          }),
      };
    });
    afterAll(() => db.close());

    it('is written by entries that were worked out before the lock, where nothing changed that decides', async () => {
      const kid = await addLog(db.database, 'ahead');
      const [one, two] = [makeAppender(here), makeAppender(there)];
      const readEarly = async (principalId: string): Promise<string[]> => {
        asked = [];
        await append(one, makeAppend(kid, { principalId }));
        return asked.slice(0, asked.indexOf(LOCK)).filter((kind) => kind === 'WITH q');
      };
      const early = db.database.kind === 'postgres' ? ['WITH q'] : [];
      await readEarly('a');
      // Alone, a node spares itself that read.
      expect(await readEarly('b')).toEqual([]);
      await append(two, makeAppend(kid));
      await readEarly('c');
      expect(await readEarly('anna')).toEqual(early);
      expect(await readEarly('anna')).toEqual([]);
      expect(
        await Promise.all([2, 3, 4, 5, 6, 7].map((seq) => opens(db.database, kid, seq, 'anna'))),
      ).toEqual([false, false, true, false, true, true]);
    });

    // Guards against: a key and a GPC signal that the holder of the lock wrote, and what was worked out before did not know.
    it('is written by entries that know what the holder of the lock wrote', async () => {
      const kid = await addLog(db.database, 'behind');
      const [one, two] = [makeAppender(here), makeAppender(there)];
      for (const appender of [one, two, one])
        await append(appender, makeAppend(kid, { principalId: 'else' }));
      let granted: ReturnType<typeof append> | undefined;
      onWritten = async () => {
        const isAsked = new Promise<void>((resolve) => {
          onLock = resolve;
        });
        if (db.database.kind !== 'postgres') return;
        granted = append(one, makeAppend(kid));
        await isAsked;
      };
      const signal = await append(two, makeAppend(kid, { choice: 'gpc-opt-out' }));
      const grant = await (granted ?? append(one, makeAppend(kid)));
      const seqs = [signal, grant].map(({ entries }) => entries[0]?.seq);
      const rows = await db.database
        .read('consent_openings')
        .where({ kid, principal: 'ref-anna' })
        .select('detail');
      expect(rows.map(({ detail }) => JSON.parse(detail) as object)).toMatchObject([
        { gpc: true },
        { gpc: true },
      ]);
      expect(await Promise.all(seqs.map((seq) => opens(db.database, kid, seq ?? -1)))).toEqual([true, true]);
    });
  });
}
