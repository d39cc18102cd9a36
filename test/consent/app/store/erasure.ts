import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../../src/db/engine.ts';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { NOW } from '../../../support/make.ts';
import { shredPrincipal } from '../../../support/shred-principal.ts';
import {
  addLog,
  allEntries,
  append,
  auditLog,
  createAppend,
  createAppender,
  macOf,
  opens,
  principalKey,
  simulateErasure,
  stateOf,
  WRAP_KEY,
} from './fixture.ts';

const shred = (database: Database, kid: string, principalId = 'anna') =>
  shredPrincipal(
    database,
    {
      kid,
      principal: `ref-${principalId}`,
      principalId,
      wrapKey: WRAP_KEY,
      stateMac: macOf(kid),
      notify: () => [],
    },
    NOW,
  );

export function erasureContract(make: MakeDatabase): void {
  describe('consent and erasure', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('is erased until a new grant, which starts a new key', async () => {
      const kid = await addLog(db.database, 'erased');
      const appender = createAppender(db.database);
      await append(appender, createAppend(kid));
      const before = await principalKey(other, kid);
      await simulateErasure(db.database, kid);
      expect(await stateOf(other, kid)).toMatchObject({ erased: true, event: null, head: { seq: 2 } });
      expect(await principalKey(other, kid)).toBeNull();
      await append(appender, createAppend(kid, { choice: 'denied' }));
      expect(await stateOf(other, kid)).toMatchObject({ erased: true });
      const { entries } = await append(appender, createAppend(kid));
      const seq = entries[0]?.seq ?? 0;
      expect(await stateOf(other, kid)).toMatchObject({ erased: false, event: { choice: 'granted', seq } });
      expect(await principalKey(other, kid)).not.toEqual(before);
      expect([await opens(other, kid, 2), await opens(other, kid, seq)]).toEqual([false, true]);
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
    });

    it('a withdrawal beside the grant, in one turn, is not lost', async () => {
      const kid = await addLog(db.database, 'erased-turn');
      const appender = createAppender(db.database);
      await append(appender, createAppend(kid));
      await simulateErasure(db.database, kid);
      await Promise.all([
        append(appender, createAppend(kid)),
        append(appender, createAppend(kid, { choice: 'withdrawn' })),
      ]);
      expect(await stateOf(other, kid)).toMatchObject({ erased: false, event: { choice: 'withdrawn' } });
      expect([await opens(other, kid, 3), await opens(other, kid, 4)]).toEqual([true, true]);
    });

    it('is seen at once on another node, and done once by two at once', async () => {
      const kid = await addLog(db.database, 'shred');
      await append(createAppender(db.database), createAppend(kid));
      await append(createAppender(other), createAppend(kid, { principalId: 'ben' }));
      const done = await Promise.all([shred(db.database, kid), shred(other, kid)]);
      expect(new Set(done.map(({ seq }) => seq))).toEqual(new Set([4, null]));
      for (const database of [db.database, other]) {
        expect(await stateOf(database, kid)).toMatchObject({ erased: true, event: null, head: { seq: 4 } });
        expect(await stateOf(database, kid, 'ben')).toMatchObject({ erased: false, event: { seq: 3 } });
      }
      expect([await opens(other, kid, 2), await opens(other, kid, 3, 'ben')]).toEqual([false, true]);
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
    });

    it('beside grants on two nodes leaves one log, and what opens is what came after', async () => {
      const kid = await addLog(db.database, 'shred-race');
      const appenders = [createAppender(db.database), createAppender(other)];
      await append(appenders[0]!, createAppend(kid));
      await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          i % 10 === 5
            ? shred(i % 20 === 5 ? db.database : other, kid)
            : append(appenders[i % 2]!, createAppend(kid)),
        ),
      );
      const entries = await allEntries(other, kid);
      const erasures = entries.filter(({ entry }) => entry.includes('"subject.erased"'));
      const last = erasures.at(-1)?.seq ?? 0;
      expect(erasures.length).toBeGreaterThan(0);
      for (const { seq } of entries.slice(2)) {
        expect(await opens(other, kid, seq)).toBe(seq > last);
      }
      expect((await stateOf(other, kid)).erased).toBe(last === entries.length - 1);
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
    });
  });
}
