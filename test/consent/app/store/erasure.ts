import { describe, expect, it } from 'vitest';
import type { Database } from '../../../../src/db/engine.ts';
import { NOW } from '../../../support/make.ts';
import { shredPrincipal } from '../../../support/shred-principal.ts';
import {
  addLog,
  allEntries,
  append,
  createAppend,
  createAppender,
  expectWhole,
  macOf,
  type Nodes,
  opens,
  stateOf,
  WRAP_KEY,
} from './fixture.ts';

function shred(database: Database, kid: string) {
  const anna = { kid, principal: 'ref-anna', principalId: 'anna' };
  const keys = { wrapKey: WRAP_KEY, stateMac: macOf(kid) };
  return shredPrincipal(database, { ...anna, ...keys, notify: () => [] }, NOW);
}

export function erasureContract(at: Nodes): void {
  describe('consent and erasure', () => {
    it('a withdrawal beside the grant, in one turn, is not lost', async () => {
      const kid = await addLog(at.db, 'erased-turn');
      const appender = createAppender(at.db);
      await append(appender, createAppend(kid));
      await shred(at.db, kid);
      await Promise.all([
        append(appender, createAppend(kid)),
        append(appender, createAppend(kid, { choice: 'withdrawn' })),
      ]);
      expect(await stateOf(at.other, kid)).toMatchObject({ erased: false, event: { choice: 'withdrawn' } });
      expect([await opens(at.other, kid, 4), await opens(at.other, kid, 5)]).toEqual([true, true]);
    });

    it('is seen at once on another node, and done once by two at once', async () => {
      const kid = await addLog(at.db, 'shred');
      await append(createAppender(at.db), createAppend(kid));
      await append(createAppender(at.other), createAppend(kid, { principalId: 'ben' }));
      const done = await Promise.all([shred(at.db, kid), shred(at.other, kid)]);
      expect(new Set(done.map(({ seq }) => seq))).toEqual(new Set([4, null]));
      for (const database of [at.db, at.other]) {
        expect(await stateOf(database, kid)).toMatchObject({ erased: true, event: null, head: { seq: 4 } });
        expect(await stateOf(database, kid, 'ben')).toMatchObject({ erased: false, event: { seq: 3 } });
      }
      expect([await opens(at.other, kid, 2), await opens(at.other, kid, 3, 'ben')]).toEqual([false, true]);
      await expectWhole(at.other, kid);
    });

    it('beside grants on two nodes leaves one log, and what opens is what came after', async () => {
      const kid = await addLog(at.db, 'shred-race');
      const appenders = [createAppender(at.db), createAppender(at.other)];
      await append(appenders[0]!, createAppend(kid));
      await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          i % 10 === 5
            ? shred(i % 20 === 5 ? at.db : at.other, kid)
            : append(appenders[i % 2]!, createAppend(kid)),
        ),
      );
      const entries = await allEntries(at.other, kid);
      const erasures = entries.filter(({ entry }) => entry.includes('"subject.erased"'));
      const last = erasures.at(-1)?.seq ?? 0;
      expect(erasures.length).toBeGreaterThan(0);
      for (const { seq } of entries.slice(2)) {
        expect(await opens(at.other, kid, seq)).toBe(seq > last);
      }
      expect((await stateOf(at.other, kid)).erased).toBe(last === entries.length - 1);
      await expectWhole(at.other, kid);
    });
  });
}
