import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';

import type { Database } from '../../../src/db/engine.ts';
import { LAST_BACKUP, writeMeta } from '../../../src/db/meta-store.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { insertContest, insertOverride } from '../../../src/rights/contests/store.ts';
import { KEEP_NOTHING, planErasure } from '../../../src/rights/erase/erase-service.ts';
import {
  type ErasureTarget,
  type Keep,
  markComplete,
  NOTHING,
  type ScopeCounts,
  scopeResults,
} from '../../../src/rights/erase/erasure-service.ts';
import { placeHold } from '../../../src/rights/erase/hold-store.ts';
import { eraseRows } from '../../../src/rights/erase/rows-store.ts';
import { linkRequest } from '../../../src/rights/link-store.ts';
import { appender, createRequest, macOf, WRAP_KEY } from '../../consent/contract/consent-support.ts';
import { addTenant, holdTransaction, type MakeDatabase } from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';
import { noteStatements } from '../../support/database.ts';
import { createEntry, createTestTenant, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';
import { sealProblems } from '../../support/verify.ts';
import { eraserOn, requestOf } from '../support/eraser.ts';
import { contestOf, insert, WORDS } from './contest-texts.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;
const PAUL = { ref: 'ref-1', id: 'id of ref-1' };
const FORGET: Keep = { openContests: true, override: true };

/** The preview of an erasure equals its receipt, and a large one leaves its requests to steps. */
export function erasureContract(make: MakeDatabase): void {
  describe('an erasure', () => {
    const { db, other } = twoNodes(make);
    beforeAll(async () => {
      await db.database.transaction((tx) => writeMeta(tx, LAST_BACKUP, String(NOW)));
    });

    const within = (work: Parameters<Database['transaction']>[0]) => db.database.transaction(work);
    const hold = (kid: string, durable: string) =>
      within((tx) => placeHold(tx, { kid, durable, basis: 'case 1', createdAt: NOW }));
    const record = (kid: string, id: string, fields: object = {}) =>
      createRecorder(db.database).record(createEntry({ kid, id, durable: 'mine', ...fields }));
    /** A tenant whose consent evidence can be shredded, and its eraser on a node. */
    function service(database: Database, kid: string, largeAbove = 1) {
      const tenant = { ...createTestTenant(kid), principalWrap: WRAP_KEY, stateMac: macOf(kid) };
      const patience = { patienceMs: Number.POSITIVE_INFINITY, largeAbove };
      const over = { ...patience, tenantOf: () => tenant };
      const eraser = eraserOn(database, tempDir('erasure'), () => NOW, over);
      return {
        ...eraser,
        eraseBy: (target: ErasureTarget, keep: Keep = KEEP_NOTHING) =>
          eraser.erase(requestOf(tenant, { target, keep })),
      };
    }
    const MINE = { ...NOTHING, durables: ['mine'] };

    /** An id that is in no other word and of no other tenant, as a keyed hash is: an erasure searches the whole file for it. */
    const deviceOf = (kid: string) => (name: string) => `device ${name} of ${kid}`;

    /** Two devices with three visits each, of which one is contested and one linked; an override, consent, and somebody else. */
    async function fill(kid: string): Promise<void> {
      const summary = { signals: [], joint: 'j', expiresAt: NOW + DAY };
      const recorder = createRecorder(db.database);
      const entries = ['one', 'two', 'else'].flatMap((device) =>
        ['a', 'b', 'c'].map((visit) =>
          createEntry({ kid, id: `${device}-${visit}`, durable: deviceOf(kid)(device), summary }),
        ),
      );
      await Promise.all(entries.map((entry) => recorder.record(entry)));
      for (const durable of ['one', 'else'])
        await within(async (tx) => {
          const contested = { kid, requestId: `req_${durable}-a`, durable: deviceOf(kid)(durable) };
          await insertContest(tx, WORDS, contestOf(contested));
          await insertOverride(tx, { ...contested, at: NOW });
          for (const visit of ['b', 'c']) {
            const link = { kid, requestId: `req_${durable}-${visit}`, principal: PAUL.ref, linkedAt: NOW };
            await linkRequest(tx, link);
          }
        });
      await appender(db.database).append(createRequest(kid, { purposes: ['ads', 'mail'] }));
    }

    async function compare(kid: string, target: ErasureTarget, keep: Keep, largeAbove: number) {
      const plan = await planErasure(other, { kid, target, keep });
      const eraser = service(db.database, kid, largeAbove);
      const receipt = await eraser.eraseBy(target, keep);
      expect(eraser.faults).toEqual([]);
      expect(markComplete(receipt.scopes, true)).toEqual(scopeResults(plan));
      const isIncomplete = db.database.kind === 'postgres' && plan.storage?.erased === 1;
      expect(receipt.incomplete).toBe(isIncomplete);
      return plan;
    }

    const DEVICES = { ...NOTHING, durables: ['one', 'two'] };
    const REQUESTS = { ...NOTHING, requests: ['req_one-a', 'req_two-b'] };
    const PRINCIPAL = { ...NOTHING, requests: ['req_one-b'], principal: PAUL, linksOf: PAUL.ref };
    const counts = (erased: number, retained = 0) => ({ erased, retained });
    const consent = (erased: number, retained = 0) => expect.objectContaining(counts(erased, retained));
    const heldCounts = (erased: number, retained: number) => ({
      ...counts(erased, retained),
      basis: 'case 1',
    });
    const keptOne = (erased: number) => expect.objectContaining(counts(erased, 1));
    interface Plan {
      readonly of: string;
      readonly target: ErasureTarget;
      readonly expected: ScopeCounts;
      readonly keep?: Keep;
      readonly held?: string;
    }
    const ofDevices = { sightings: counts(2), 'visitor-index': counts(2), links: counts(2) };
    const ofHeld = {
      decisions: heldCounts(3, 3),
      'visitor-index': heldCounts(1, 1),
      links: heldCounts(0, 2),
    };
    it.each<Plan>([
      {
        of: 'devices',
        target: DEVICES,
        expected: { ...ofDevices, decisions: counts(6), 'network-marks': counts(4) },
      },
      {
        of: 'requests',
        target: REQUESTS,
        expected: { decisions: counts(2), contests: counts(1), override: counts(1), sightings: counts(0) },
      },
      {
        of: 'a principal',
        target: PRINCIPAL,
        expected: { decisions: counts(1), links: counts(4), consent: consent(2) },
      },
      {
        of: 'links whose consent stays',
        target: { ...PRINCIPAL, principal: null },
        expected: { links: counts(4), consent: consent(0, 2) },
      },
      {
        of: 'devices of which one is held',
        target: DEVICES,
        held: 'one',
        expected: { ...ofHeld, 'network-marks': heldCounts(2, 2) },
      },
      {
        of: 'requests of a held device',
        target: REQUESTS,
        held: 'one',
        expected: { contests: heldCounts(0, 1), override: heldCounts(0, 1), decisions: heldCounts(1, 1) },
      },
      {
        of: 'a forget beside an open contest',
        target: DEVICES,
        keep: FORGET,
        expected: {
          contests: keptOne(0),
          decisions: keptOne(5),
          override: keptOne(0),
          'visitor-index': keptOne(1),
        },
      },
      { of: 'nobody', target: NOTHING, expected: { backups: expect.objectContaining({ retained: 0 }) } },
    ])('is planned with the numbers of its receipt: $of', async (plan) => {
      const { of, target, expected, keep = KEEP_NOTHING, held: heldDevice } = plan;
      for (const [way, largeAbove] of [
        ['at-once', 500],
        ['in-steps', 1],
      ] as const) {
        const kid = await addTenant(db.database, `plan-${of.replaceAll(' ', '-')}-${way}`);
        await fill(kid);
        if (heldDevice !== undefined) await hold(kid, deviceOf(kid)(heldDevice));
        const devices = { ...target, durables: target.durables.map(deviceOf(kid)) };
        expect(await compare(kid, devices, keep, largeAbove), way).toMatchObject(expected);
      }
    });

    it('is planned without waiting for a writer, and without a change', async () => {
      const kid = await addTenant(db.database, 'plan-waits-not');
      await fill(kid);
      const writer = await holdTransaction(db.database, (tx) => lockHead(tx, kid));
      const durables = DEVICES.durables.map(deviceOf(kid));
      const target = { ...NOTHING, durables, principal: PAUL, linksOf: PAUL.ref };
      const plan = () => planErasure(other, { kid, target, keep: KEEP_NOTHING });
      const plannedScopes = await Promise.race([plan(), sleep(5000, null, { ref: false })]);
      await writer.commit();
      expect(plannedScopes).toMatchObject({ decisions: { erased: 6 }, consent: { erased: 2 } });
      expect(await plan()).toEqual(plannedScopes);
    });

    const remainingIds = (kid: string, table = 'decisions'): Promise<string[]> =>
      other.read(table).where({ kid }).orderBy('request_id').pluck('request_id');
    /** Its steps are left to a resume. */
    async function begin(kid: string): Promise<void> {
      const eraser = service(db.database, kid);
      await eraser.stop();
      await eraser.eraseBy(MINE);
    }

    it('in steps leaves what the device does after it, and takes what came before', async () => {
      const kid = await addTenant(db.database, 'new-life');
      for (const id of ['a', 'm']) await record(kid, id);
      await begin(kid);
      await record(kid, 'n');
      // Filed against a decision that the steps have not reached.
      for (const id of ['m', 'n'])
        await insert(db.database, contestOf({ kid, requestId: `req_${id}`, durable: 'mine' }));
      await service(other, kid).resume();
      expect(await remainingIds(kid)).toEqual(['req_n']);
      expect(await remainingIds(kid, 'contests')).toEqual(['req_n']);
      expect(await other.read('sightings').where({ kid }).pluck('seen')).toEqual([1]);
    });

    it('in steps keeps everything for a hold that was there, and nothing for one that comes after it', async () => {
      const kid = await addTenant(db.database, 'step-holds');
      for (const id of ['a', 'b']) await record(kid, id);
      await begin(kid);
      await hold(kid, 'mine');
      await service(other, kid).resume();
      expect(await remainingIds(kid)).toEqual([]);
      for (const id of ['c', 'd']) await record(kid, id);
      const { scopes } = await service(other, kid).eraseBy(MINE);
      for (const [scope, count] of [
        ['decisions', 2],
        ['sightings', 1],
      ] as const)
        expect(scopes).toContainEqual({ scope, action: 'retained', count, basis: 'case 1' });
      expect(await remainingIds(kid)).toEqual(['req_c', 'req_d']);
    });

    it('in steps leaves the seals of its hours whole after each, on two nodes at once', async () => {
      const kid = await addTenant(db.database, 'step-seals');
      const ids = Array.from({ length: 900 }, (_, i) => String(i).padStart(4, '0'));
      // Three of four are of the device; hours and ids in different orders.
      const momentOf = (i: number): number => BEGIN + ((i * 7) % 3) * HOUR + (i % 1000);
      const recorder = createRecorder(db.database);
      const entries = ids.map((id, i) =>
        createEntry({ kid, id, decidedAt: momentOf(i), durable: i % 4 === 0 ? 'theirs' : 'mine' }),
      );
      await Promise.all(entries.map((entry) => recorder.record(entry)));
      // The last hour is anchored between the first transaction and the steps.
      await anchorVerdicts(db.database, kid, BEGIN + 2 * HOUR + HOUR / 2);
      await begin(kid);
      expect(await sealProblems(other, kid)).toEqual([]);
      await anchorVerdicts(db.database, kid, BEGIN + 9 * HOUR);
      await Promise.all([db.database, other].map((node) => service(node, kid).resume()));
      expect(await remainingIds(kid)).toHaveLength(225);
      expect(await sealProblems(other, kid)).toEqual([]);
      expect(await other.read('verdict_seals').where({ kid })).toHaveLength(3);
    });

    it('in steps looks for no decision of the device under the lock of the log', async () => {
      const kid = await addTenant(db.database, 'quiet');
      for (const id of ['a', 'b']) await record(kid, `quiet-${id}`);
      const looks: string[] = [];
      await within(async (tx) => {
        await lockHead(tx, kid);
        noteStatements(tx, ({ sql }) => {
          if (/from [`"]decisions[`"]/.test(sql)) looks.push(sql);
        });
        const target = { ...MINE, kid, keep: KEEP_NOTHING, requestRef: String };
        await eraseRows(tx, target, { leftTo: 'era_quiet' });
      });
      // The newest alone, by its index.
      expect(looks).toEqual([expect.stringMatching(/order by [`"]request_id[`"] desc limit/)]);
    });
  });
}
