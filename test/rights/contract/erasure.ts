import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit.ts';
import type { Database } from '../../../src/db/engine.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors.ts';
import { readEntries } from '../../../src/log/entries.ts';
import {
  appender,
  createRequest,
  macOf,
  readState,
  WRAP_KEY,
} from '../../consent/contract/consent-support.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { shredPrincipal } from '../../support/shred-principal.ts';
import { sealProblems } from '../../support/verify.ts';

const auditEvent = (kid: string, at: number): Parameters<typeof recordAudit>[1] => ({
  kid,
  at,
  actor: { role: 'system', ref: 'test' },
  action: 'dsar.exported',
  object: 'o',
  detail: {},
});

type Notify = Parameters<typeof shredPrincipal>[1]['notify'];

const BEGIN = Math.floor(NOW / HOUR) * HOUR;

export function erasureContract(make: MakeDatabase): void {
  describe('crypto-shredding and seals', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const shred = (database: Database, kid: string, principal = 'ref-1', notify: Notify = () => []) => {
      const principalId = `id of ${principal}`;
      const target = { kid, principal, principalId, wrapKey: WRAP_KEY, stateMac: macOf(kid), notify };
      return shredPrincipal(database, target, NOW);
    };
    const types = async (kid: string): Promise<string[]> =>
      (await readEntries(other, kid, 0, 100)).map(
        ({ entry }) => (JSON.parse(entry) as { type: string }).type,
      );
    const wrappedKey = async (kid: string): Promise<unknown> =>
      (await other.read('consent_principals').where({ kid, principal: 'ref-1' }).first()).wrapped_key;

    it('erases once, however often and on however many nodes it is asked for', async () => {
      const kid = await addTenant(db.database, 'again');
      await appender(db.database).append(createRequest(kid));
      const answers = await Promise.all(
        [db.database, other, db.database, other].map((node) => shred(node, kid)),
      );
      expect(answers.filter(({ seq }) => seq !== null)).toMatchObject([{ openings: 1, seq: 1 }]);
      expect(await types(kid)).toEqual(['consent.granted', 'subject.erased']);
      expect(await shred(other, kid, 'nobody')).toEqual({ openings: 0, seq: null, secrets: [] });
    });

    it('begins with a new key after a new grant', async () => {
      const kid = await addTenant(db.database, 'anew');
      await appender(db.database).append(createRequest(kid));
      const old = await wrappedKey(kid);
      await shred(db.database, kid);
      await appender(other).append(createRequest(kid));
      expect(await readState(db.database, kid)).toMatchObject({
        erased: false,
        event: { choice: 'granted' },
      });
      expect(await wrappedKey(kid)).not.toBe(old);
    });

    describe('the hourly seal of verdicts', () => {
      const record = async (kid: string, id: string, decidedAt: number): Promise<void> => {
        await createRecorder(db.database).record(createEntry({ kid, id, decidedAt }));
      };

      it('covers each hour that is over, once, on however many nodes', async () => {
        const kid = await addTenant(db.database, 'sealed');
        await record(kid, 'a', BEGIN);
        await record(kid, 'b', BEGIN + HOUR - 1);
        await record(kid, 'c', BEGIN + 2 * HOUR);
        expect(await anchorVerdicts(db.database, kid, BEGIN + HOUR)).toBe(0);
        const later = BEGIN + 4 * HOUR;
        await Promise.all([db.database, other, db.database].map((node) => anchorVerdicts(node, kid, later)));
        expect(await types(kid)).toEqual(['verdicts.sealed', 'verdicts.sealed']);
        const counts = await other.read('verdict_seals').where({ kid }).orderBy('hour').pluck('count');
        expect(counts).toEqual([2, 1]);
        expect(await sealProblems(other, kid)).toEqual([]);
        expect(await anchorVerdicts(other, kid, later + HOUR)).toBe(0);
      });

      it('is closed: what a clock that went back brings is filed after it, with its own time in it', async () => {
        const kid = await addTenant(db.database, 'went-back');
        await record(kid, 'before', BEGIN);
        await recordAudit(db.database, auditEvent(kid, BEGIN));
        await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR);
        await anchorAudit(db.database, kid, BEGIN + 2 * HOUR);
        await record(kid, 'late', BEGIN + 1);
        await recordAudit(db.database, auditEvent(kid, BEGIN + 1));
        expect(await sealProblems(other, kid)).toEqual([]);
        expect(await sealProblems(other, kid)).toEqual([]);
        const closed = Math.floor(BEGIN / HOUR) * HOUR + HOUR;
        const query = other.read('decisions').where({ kid, request_id: 'req_late' });
        const row = await query.first<{ decided_at: number; verdict: string }>('decided_at', 'verdict');
        expect(Number(row.decided_at)).toBe(closed);
        expect(JSON.parse(row.verdict)).toMatchObject({ decidedAt: BEGIN + 1 });
      });

      it('notices a verdict that was changed', async () => {
        const kid = await addTenant(db.database, 'changed-verdict');
        await record(kid, 'a', BEGIN);
        await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR);
        await db.database.transaction((tx) =>
          tx('decisions').where({ kid, request_id: 'req_a' }).update({ verdict: '{"class":"human"}' }),
        );
        expect(await sealProblems(other, kid)).toEqual(['verdict req_a was changed']);
      });
    });
  });
}
