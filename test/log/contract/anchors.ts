import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts, unanchoredSince } from '../../../src/log/anchors-store.ts';
import { readEntries } from '../../../src/log/entries-store.ts';
import { fileContest } from '../../../src/rights/contests/contest.ts';
import { insertContest } from '../../../src/rights/contests/store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { WORDS } from '../../rights/contract/contest-texts.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { sealProblems } from '../../support/verify.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;
const QUIET_HOURS = 6;

export function anchorsContract(make: MakeDatabase): void {
  describe('how far a tenant is anchored', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const record = (kid: string, id: string, decidedAt: number, durable = id) =>
      createRecorder(db.database).record(createEntry({ kid, id, decidedAt, durable }));
    const seals = async (kid: string): Promise<readonly { type: string; count: number; from: string }[]> =>
      (await readEntries(other, kid, 0, 100)).flatMap(({ entry }) => {
        const { type, body } = JSON.parse(entry) as { type: string; body: { count: number; from: string } };
        return type.endsWith('.sealed') ? [{ type, count: body.count, from: body.from }] : [];
      });
    const note = (kid: string, at: number) => {
      const actor = { role: 'dpo', ref: 'dora' } as const;
      return recordAudit(db.database, { kid, at, actor, action: 'dsar.exported', object: null, detail: {} });
    };
    const keepers: Readonly<Record<string, (kid: string, id: string) => Promise<unknown>>> = {
      'a legal hold': (kid, durable) => {
        const hold = { kid, durable, basis: 'case 9', created_at: NOW };
        return db.database.transaction((tx) => tx('legal_holds').insert(hold));
      },
      'an open contest': (kid, durable) => {
        const filing = {
          kid,
          contestId: `con_${kid}`,
          requestId: `req_${durable}`,
          durable,
          class: 'unknown',
        };
        const contest = fileContest({ ...filing, filedBy: 'anna', statement: null }, NOW);
        return db.database.transaction((tx) => insertContest(tx, WORDS, contest));
      },
    };

    it.each(Object.keys(keepers))(
      'an hour is sealed once, though %s keeps one of its decisions',
      async (row) => {
        const kid = await addTenant(db.database, `quiet-${row.replaceAll(' ', '-')}`);
        for (const id of ['k1', 'k2', 'k3']) await record(kid, `${kid}${id}`, BEGIN);
        await keepers[row]?.(kid, `${kid}k1`);
        expect(await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR)).toBe(1);
        for (let hour = 0; hour < QUIET_HOURS; hour += 1) {
          const now = BEGIN + 10 * DAY + hour * HOUR;
          await deleteExpired(db.database, { kid, days: 7, now });
          expect(await unanchoredSince(other, kid, now)).toBeNull();
          expect(await anchorVerdicts(other, kid, now)).toBe(0);
        }
        expect(await other.read('decisions').where({ kid }).pluck('durable')).toEqual([`${kid}k1`]);
        expect(await seals(kid)).toMatchObject([{ type: 'verdicts.sealed', count: 3 }]);
        expect(await sealProblems(other, kid)).toEqual([]);
        await record(kid, `${kid}new`, BEGIN + 11 * DAY);
        expect(await anchorVerdicts(db.database, kid, BEGIN + 12 * DAY)).toBe(1);
        expect(await seals(kid)).toHaveLength(2);
      },
    );

    it('is remembered where the anchors are deleted and the rows are still there', async () => {
      const kid = await addTenant(db.database, 'cut-short');
      await record(kid, 'cut', BEGIN);
      await note(kid, BEGIN);
      const later = BEGIN + 2 * HOUR;
      for (const seal of [anchorVerdicts, anchorAudit]) expect(await seal(db.database, kid, later)).toBe(1);
      await db.database.transaction(async (tx) => {
        for (const table of ['verdict_seals', 'audit_seals']) await tx(table).where({ kid }).delete();
      });
      for (const seal of [anchorVerdicts, anchorAudit]) expect(await seal(other, kid, later)).toBe(0);
      // Rows that a clock wrote after it went back are filed behind it.
      await record(kid, 'cut2', BEGIN + 1);
      await note(kid, BEGIN + 1);
      for (const [table, at] of [['decisions', 'decided_at'] as const, ['audit_log', 'at'] as const]) {
        const times = (await other.read(table).where({ kid }).orderBy(at).pluck(at)) as unknown[];
        expect(times.map(Number), table).toEqual([BEGIN, BEGIN + HOUR]);
      }
      for (const seal of [anchorVerdicts, anchorAudit]) expect(await seal(other, kid, later + HOUR)).toBe(1);
      const types = (await seals(kid)).map(({ type }) => type);
      expect(types.sort()).toEqual(['audit.sealed', 'audit.sealed', 'verdicts.sealed', 'verdicts.sealed']);
      // Retention says in the log what it takes; this was somebody else.
      const missing = await sealProblems(other, kid);
      expect(missing.filter((row) => row.startsWith('the anchor of the'))).toHaveLength(2);
      expect(missing).toHaveLength(2);
    });
  });
}
