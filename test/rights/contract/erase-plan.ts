import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { LAST_BACKUP, writeMeta } from '../../../src/db/meta-store.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/entries.ts';
import { fileContest } from '../../../src/rights/contests/contest.ts';
import { insertContest, insertOverride } from '../../../src/rights/contests/store.ts';
import { createEraseService, KEEP_NOTHING, planErasure } from '../../../src/rights/erase/erase.ts';
import {
  type ErasureTarget,
  type Keep,
  markComplete,
  NOTHING,
  type ScopeCounts,
  scopeResults,
} from '../../../src/rights/erase/erasure.ts';
import { placeHold } from '../../../src/rights/erase/hold.ts';
import { linkRequest } from '../../../src/rights/link-store.ts';
import type { Tenant } from '../../../src/tenants/tenant.ts';
import { appender, createRequest, macOf, WRAP_KEY } from '../../consent/contract/consent-support.ts';
import {
  addTenant,
  holdTransaction,
  type MakeDatabase,
  type TestDatabase,
} from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';
import { createEntry, createTestTenant, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { WORDS } from './contest-texts.ts';

const PAUL = { ref: 'ref-1', id: 'id of ref-1' };
const FORGET: Keep = { openContests: true, override: true };

/** A tenant whose consent evidence can be shredded. */
export const erasedTenant = (kid: string): Tenant => ({
  ...createTestTenant(kid),
  principalWrap: WRAP_KEY,
  stateMac: macOf(kid),
});

/** The preview of an erasure equals its receipt. */
export function erasePlanContract(make: MakeDatabase): void {
  describe('the plan of an erasure', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
      await db.database.transaction((tx) => writeMeta(tx, LAST_BACKUP, String(NOW)));
    });
    afterAll(() => db.close());

    const within = (work: Parameters<Database['transaction']>[0]) => db.database.transaction(work);
    const hold = (kid: string, durable: string) =>
      within((tx) => placeHold(tx, { kid, durable, basis: 'case 1', createdAt: NOW }));

    /** Two devices with three visits each, of which one is contested and one linked; an override, consent, and somebody else. */
    async function fill(kid: string): Promise<void> {
      const summary = { signals: [], joint: 'j', expiresAt: NOW + DAY };
      const recorder = createRecorder(db.database);
      for (const durable of ['one', 'two', 'else'])
        for (const visit of ['a', 'b', 'c'])
          await recorder.record(createEntry({ kid, id: `${durable}-${visit}`, durable, summary }));
      for (const durable of ['one', 'else'])
        await within(async (tx) => {
          const requestId = `req_${durable}-a`;
          const ids = { kid, contestId: `con_${kid}_${durable}`, requestId, durable };
          const filing = { ...ids, class: 'unknown', filedBy: 'anna', statement: null } as const;
          await insertContest(tx, WORDS, fileContest(filing, NOW));
          await insertOverride(tx, { kid, durable, requestId, at: NOW });
          for (const visit of ['b', 'c'])
            await linkRequest(tx, {
              kid,
              requestId: `req_${durable}-${visit}`,
              principal: PAUL.ref,
              linkedAt: NOW,
            });
        });
      await appender(db.database).append(createRequest(kid, { purposes: ['ads', 'mail'] }));
    }

    async function compare(kid: string, target: ErasureTarget, keep: Keep, largeAbove?: number) {
      const plan = await planErasure(other, { kid, target, keep });
      const dataDir = tempDir('plan');
      const eraser = createEraseService({
        database: db.database,
        dataDir,
        logKey: Buffer.alloc(32, 3),
        clock: () => NOW,
        random: randomBytes,
        rewriteWindow: null,
        tenantOf: () => erasedTenant(kid),
        patienceMs: Number.POSITIVE_INFINITY,
        onFault: (error) => {
          throw error;
        },
        ...(largeAbove === undefined ? {} : { largeAbove }),
      });
      const actor = { role: 'dpo', ref: 'dora' } as const;
      const tenant = erasedTenant(kid);
      const receipt = await eraser.erase({ tenant, target, requestedBy: 'dpo', actor, keep });
      expect(markComplete(receipt.scopes, true)).toEqual(scopeResults(plan));
      const isIncomplete = db.database.kind === 'postgres' && plan.storage?.erased === 1;
      expect(receipt.incomplete).toBe(isIncomplete);
      return plan;
    }

    const DEVICES = { ...NOTHING, durables: ['one', 'two'] };
    const REQUESTS = { ...NOTHING, requests: ['req_one-a', 'req_two-b'] };
    const PRINCIPAL = { ...NOTHING, requests: ['req_one-b'], principal: PAUL, linksOf: PAUL.ref };
    const RETAINED = { erased: 0, basis: 'case 1' };
    it.each<{
      readonly of: string;
      readonly target: ErasureTarget;
      readonly keep?: Keep;
      readonly held?: string;
      readonly expected: ScopeCounts;
    }>([
      {
        of: 'devices',
        target: DEVICES,
        expected: {
          decisions: { erased: 6, retained: 0 },
          sightings: { erased: 2, retained: 0 },
          'visitor-index': { erased: 2, retained: 0 },
          'network-marks': { erased: 4, retained: 0 },
          links: { erased: 2, retained: 0 },
        },
      },
      {
        of: 'requests',
        target: REQUESTS,
        expected: {
          decisions: { erased: 2, retained: 0 },
          contests: { erased: 1, retained: 0 },
          override: { erased: 1, retained: 0 },
          sightings: { erased: 0, retained: 0 },
        },
      },
      {
        of: 'a principal',
        target: PRINCIPAL,
        expected: {
          decisions: { erased: 1, retained: 0 },
          links: { erased: 4, retained: 0 },
          consent: expect.objectContaining({ erased: 2 }),
        },
      },
      {
        of: 'links whose consent stays',
        target: { ...PRINCIPAL, principal: null },
        expected: {
          links: { erased: 4, retained: 0 },
          consent: expect.objectContaining({ erased: 0, retained: 2 }),
        },
      },
      {
        of: 'devices of which one is held',
        target: DEVICES,
        held: 'one',
        expected: {
          decisions: { ...RETAINED, erased: 3, retained: 3 },
          'visitor-index': { ...RETAINED, erased: 1, retained: 1 },
          links: { ...RETAINED, retained: 2 },
          'network-marks': { ...RETAINED, erased: 2, retained: 2 },
        },
      },
      {
        of: 'requests of a held device',
        target: REQUESTS,
        held: 'one',
        expected: {
          contests: { ...RETAINED, retained: 1 },
          override: { ...RETAINED, retained: 1 },
          decisions: { ...RETAINED, erased: 1, retained: 1 },
        },
      },
      {
        of: 'a forget beside an open contest',
        target: DEVICES,
        keep: FORGET,
        expected: {
          contests: expect.objectContaining({ erased: 0, retained: 1 }),
          decisions: expect.objectContaining({ erased: 5, retained: 1 }),
          override: expect.objectContaining({ erased: 0, retained: 1 }),
          'visitor-index': expect.objectContaining({ erased: 1, retained: 1 }),
        },
      },
      { of: 'nobody', target: NOTHING, expected: { backups: expect.objectContaining({ retained: 0 }) } },
    ])(
      'tells the numbers of the receipt: $of',
      async ({ of, target, keep = KEEP_NOTHING, held: heldRequest, expected }) => {
        for (const [way, largeAbove] of [
          ['at-once', 500],
          ['in-steps', 1],
        ] as const) {
          const kid = await addTenant(db.database, `plan-${of.replaceAll(' ', '-')}-${way}`);
          await fill(kid);
          if (heldRequest !== undefined) await hold(kid, heldRequest);
          expect(await compare(kid, target, keep, largeAbove), way).toMatchObject(expected);
        }
      },
    );

    it('waits for no writer, and changes nothing', async () => {
      const kid = await addTenant(db.database, 'plan-waits-not');
      await fill(kid);
      const writer = await holdTransaction(db.database, (tx) => lockHead(tx, kid));
      const target = { ...DEVICES, principal: PAUL, linksOf: PAUL.ref };
      const plan = () => planErasure(other, { kid, target, keep: KEEP_NOTHING });
      const plannedScopes = await Promise.race([plan(), sleep(5000, null, { ref: false })]);
      await writer.commit();
      expect(plannedScopes).toMatchObject({ decisions: { erased: 6 }, consent: { erased: 2 } });
      expect(await plan()).toEqual(plannedScopes);
    });
  });
}
