import { randomBytes } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { createConsent } from '../../../src/consent/create-consent.ts';
import type { Database } from '../../../src/db/engine.ts';
import { DAY, HOUR, parseDailyWindow } from '../../../src/lib/clock.ts';
import { fileContest } from '../../../src/rights/contests/contest.ts';
import { insertContest } from '../../../src/rights/contests/store.ts';
import { NOTHING } from '../../../src/rights/erase/erasure.ts';
import { principalRef, type Tenant } from '../../../src/tenants/tenant.ts';
import { KID } from '../../support/constants.ts';
import { createEntry } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { initGpd } from '../../support/server.ts';
import { WORDS } from '../contract/contest-texts.ts';
import { eraserOn, open, requestOf } from '../support/eraser.ts';

/** gpd searches the database file after every erasure and rewrites it only where bytes were left. */

const DEVICE = 'A-device-whose-id-has-43-characters-XXXXXXX';
const MIDNIGHT = Date.UTC(2026, 10, 21);
const NOON = MIDNIGHT + 12 * HOUR;

interface Place {
  readonly database: Database;
  readonly tenant: Tenant;
  readonly counts: { vacuums: number };
  readonly eraser: ReturnType<typeof eraserOn>;
  /** Visits of the device, and its erasure. */
  readonly erase: (patienceMs?: number) => ReturnType<ReturnType<typeof eraserOn>['erase']>;
  readonly visit: () => Promise<unknown>;
  /** Leaves the id in the file, as SQLite does in the free space of a page once in a while. */
  readonly leaveBytes: () => Promise<void>;
  readonly at: (now: number) => void;
  readonly withLog: (truncate: () => Promise<boolean>) => void;
  readonly restart: () => ReturnType<typeof eraserOn>;
}

async function withPlace(
  work: (place: Place) => Promise<void>,
  {
    largeFile = 0,
    window = '02:00-04:00',
    patienceMs,
    vacuum,
  }: {
    readonly largeFile?: number;
    readonly window?: string | null;
    readonly patienceMs?: number;
    readonly vacuum?: () => Promise<void>;
  } = {},
): Promise<void> {
  const { dataDir } = await initGpd();
  const { database, tenant } = await open(dataDir);
  let now = NOON;
  let visits = 0;
  let truncate = (): Promise<boolean> => database.truncateLog();
  const counts = { vacuums: 0 };
  const watched: Database = {
    ...database,
    truncateLog: () => truncate(),
    vacuum() {
      counts.vacuums += 1;
      return vacuum ? vacuum() : database.vacuum();
    },
  };
  const start = () =>
    eraserOn(watched, dataDir, () => now, {
      largeFile,
      rewriteWindow: window === null ? null : parseDailyWindow(window),
      ...(patienceMs === undefined ? {} : { patienceMs }),
    });
  const eraser = start();
  const visit = () => {
    visits += 1;
    return createRecorder(database).record(createEntry({ kid: KID, id: `v${visits}`, durable: DEVICE }));
  };
  await work({
    database,
    tenant,
    counts,
    eraser,
    visit,
    erase: async () => {
      await visit();
      return eraser.erase(requestOf(tenant, { target: { ...NOTHING, durables: [DEVICE] } }));
    },
    leaveBytes: () =>
      database.transaction(async (tx) => {
        await tx('meta').insert({ name: 'left', value: `..${DEVICE}..` });
      }),
    at: (to) => {
      now = to;
    },
    withLog: (truncateLog) => {
      truncate = truncateLog;
    },
    restart: start,
  });
  await database.close();
}

const resumeIncomplete = (eraser: Place['eraser']) =>
  eraser.resumeStale().then(({ receipts }) => receipts.map(({ incomplete }) => incomplete));

it('a large file in which nothing is found is left as it is, and the receipt is complete', () =>
  withPlace(async ({ erase, counts, eraser }) => {
    expect(await erase()).toMatchObject({ incomplete: false });
    expect(counts.vacuums).toBe(0);
    expect(eraser.faults).toEqual([]);
  }));

// Guards against: an anonymous erasure ordered a whole VACUUM each minute, and all writes were refused meanwhile.
it('a large file in which an id is found is rewritten in the window alone, once a day', () =>
  withPlace(async ({ erase, leaveBytes, counts, eraser, at }) => {
    await leaveBytes();
    const receipt = await erase();
    expect(receipt).toMatchObject({ incomplete: true });
    at(NOON + HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([true]);
    at(MIDNIGHT + DAY + 2 * HOUR - 1);
    expect(await resumeIncomplete(eraser)).toEqual([true]);
    expect(counts.vacuums).toBe(0);
    at(MIDNIGHT + DAY + 2 * HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([false]);
    expect(counts.vacuums).toBe(1);
    expect(await eraser.status(receipt.receiptId)).toMatchObject({ incomplete: false });
    expect(await erase()).toMatchObject({ incomplete: true });
    at(MIDNIGHT + DAY + 3 * HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([true]);
    expect(counts.vacuums).toBe(1);
    at(MIDNIGHT + 2 * DAY + 2 * HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([false]);
    expect(counts.vacuums).toBe(2);
  }));

it.each(['case_hash', 'sealed'] as const)('the %s of an erased contest is looked for too', (column) =>
  withPlace(async ({ database, visit, erase }) => {
    await visit();
    const caseFields = { case_hash: 'H'.repeat(43), sealed: 'S'.repeat(48) };
    const filing = {
      kid: KID,
      contestId: 'con_left',
      requestId: 'req_v1',
      durable: DEVICE,
      class: 'unknown',
    };
    await database.transaction(async (tx) => {
      await insertContest(tx, WORDS, fileContest({ ...filing, filedBy: 'f', statement: null }, NOON));
      await tx('contests').update({ ...caseFields, sealed: `${caseFields.sealed}${'T'.repeat(500)}` });
      await tx('meta').insert({ name: 'left', value: `..${caseFields[column]}..` });
    });
    expect(await erase()).toMatchObject({ incomplete: true });
  }),
);

// Guards against: the receipt said complete while the file still held the wrapped key of the erased person.
it.each(['wrapped_key', 'salt', 'principal_id', 'wrapped_principal_id'])(
  'the %s of an erased principal is looked for too',
  async (column) =>
    withPlace(async ({ database, tenant, eraser }) => {
      const id = 'person-1';
      const ref = principalRef(tenant.principalKey, id);
      const { service } = createConsent(database, Date.now, randomBytes);
      await service.write(tenant, {
        action: 'grant',
        body: { principalId: id, purposes: ['device-identification'] },
        source: 'backend',
        caller: 'k',
        idempotencyKey: null,
      });
      await database.transaction(async (tx) => {
        await tx('consent_openings').update({ principal_id: 'P'.repeat(300) });
        await tx('principal_sessions').insert({
          hash: 'h',
          kid: KID,
          principal: ref,
          wrapped_principal_id: 'W'.repeat(300),
          key_id: 'key',
          expires_at: Date.now() + HOUR,
        });
        const tables = ['consent_principals', 'consent_openings', 'principal_sessions'];
        for (const table of tables) {
          const row = (await tx(table).where({ kid: KID, principal: ref }).first()) as Record<string, string>;
          const value = row[column];
          if (value !== undefined) await tx('meta').insert({ name: 'left', value: `..${value}..` });
        }
      });
      const target = { ...NOTHING, principal: { ref, id }, linksOf: ref };
      expect(await eraser.erase(requestOf(tenant, { target }))).toMatchObject({ incomplete: true });
    }),
);

it('without a window it is rewritten when an operator says so, at once', () =>
  withPlace(
    async ({ erase, leaveBytes, counts, eraser, at }) => {
      await leaveBytes();
      expect(await erase()).toMatchObject({ incomplete: true });
      at(MIDNIGHT + 2 * DAY + 3 * HOUR);
      expect(await resumeIncomplete(eraser)).toEqual([true]);
      expect(counts.vacuums).toBe(0);
      expect((await eraser.resume()).receipts).toMatchObject([{ incomplete: false }]);
      expect(counts.vacuums).toBe(1);
    },
    { window: null },
  ));

it('a small file is rewritten at once', () =>
  withPlace(
    async ({ erase, leaveBytes, counts }) => {
      await leaveBytes();
      expect(await erase()).toMatchObject({ incomplete: false });
      expect(counts.vacuums).toBe(1);
    },
    { largeFile: 2 ** 30, window: null },
  ));

it('one that cannot be rewritten is not tried all night', () =>
  withPlace(
    async ({ erase, leaveBytes, counts, eraser, at }) => {
      await leaveBytes();
      await erase();
      for (const minutes of [0, 1, 2]) {
        at(MIDNIGHT + DAY + 2 * HOUR + minutes * 60_000);
        expect(await resumeIncomplete(eraser)).toEqual([true]);
      }
      expect(counts.vacuums).toBe(1);
      expect(eraser.faults).toHaveLength(1);
    },
    { vacuum: () => Promise.reject(new Error('no room')) },
  ));

it('what could not be searched is searched by the next sweep, and not rewritten', () =>
  withPlace(async ({ database, erase, counts, eraser, at, withLog }) => {
    withLog(() => Promise.resolve(false));
    expect(await erase()).toMatchObject({ incomplete: true });
    at(NOON + HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([true]);
    withLog(() => database.truncateLog());
    expect(await resumeIncomplete(eraser)).toEqual([false]);
    expect(counts.vacuums).toBe(0);
  }));

it('what nobody can look for after a crash waits for the window', () =>
  withPlace(async ({ database, erase, counts, at, withLog, restart }) => {
    withLog(() => Promise.resolve(false));
    expect(await erase()).toMatchObject({ incomplete: true });
    withLog(() => database.truncateLog());
    const next = restart();
    at(NOON + HOUR);
    expect(await resumeIncomplete(next)).toEqual([true]);
    expect(counts.vacuums).toBe(0);
    at(MIDNIGHT + DAY + 2 * HOUR);
    expect(await resumeIncomplete(next)).toEqual([false]);
    expect(counts.vacuums).toBe(1);
  }));

it('a device that visits again while the file is searched is rightly in it', () =>
  withPlace(async ({ database, erase, visit, counts, withLog }) => {
    withLog(async () => {
      const truncated = await database.truncateLog();
      await visit();
      return truncated;
    });
    expect(await erase()).toMatchObject({ incomplete: false });
    expect(counts.vacuums).toBe(0);
  }));

it('says pending when the search takes longer than an answer may, and completes the receipt after it', () =>
  withPlace(
    async ({ database, erase, eraser, withLog }) => {
      let begin = (): void => {};
      const searching = new Promise<void>((resolve) => {
        begin = resolve;
      });
      withLog(async () => {
        await searching;
        return database.truncateLog();
      });
      const receipt = await erase();
      expect(receipt).toMatchObject({ incomplete: true });
      begin();
      await vi.waitFor(async () =>
        expect(await eraser.status(receipt.receiptId)).toMatchObject({ incomplete: false }),
      );
      await eraser.stop();
    },
    { patienceMs: 20 },
  ));
