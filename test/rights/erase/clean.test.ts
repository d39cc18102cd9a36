import { randomBytes } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { createConsent } from '../../../src/consent/create-consent-service.ts';
import type { Database } from '../../../src/db/engine.ts';
import { DAY, HOUR, parseDailyWindow } from '../../../src/lib/clock.ts';
import { NOTHING } from '../../../src/rights/erase/erasure-service.ts';
import { principalRef } from '../../../src/tenants/tenant.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { createEntry } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { initGpd } from '../../support/server.ts';
import { contestOf, insert } from '../contract/contest-texts.ts';
import { eraserOn, open, requestOf } from '../support/eraser.ts';

/** gpd searches the database file after every erasure and rewrites it only where bytes were left. */

const DEVICE = 'A-device-whose-id-has-43-characters-XXXXXXX';
const MIDNIGHT = Date.UTC(2026, 10, 21);
const NOON = MIDNIGHT + 12 * HOUR;

interface Options {
  readonly largeFile?: number;
  readonly window?: string | null;
  readonly patienceMs?: number;
  readonly vacuum?: () => Promise<void>;
}

type Place = Awaited<ReturnType<typeof createPlace>>;

async function withPlace(work: (place: Place) => Promise<void>, options: Options = {}): Promise<void> {
  const place = await createPlace(options);
  await work(place);
  await place.database.close();
}

async function createPlace({ largeFile = 0, window = '02:00-04:00', patienceMs, vacuum }: Options) {
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
  const restart = () =>
    eraserOn(watched, dataDir, () => now, {
      largeFile,
      rewriteWindow: window === null ? null : parseDailyWindow(window),
      ...(patienceMs !== undefined && { patienceMs }),
    });
  const eraser = restart();
  const visit = () => {
    visits += 1;
    return createRecorder(database).record(createEntry({ kid: KID, id: `v${visits}`, durable: DEVICE }));
  };
  /** Leaves a text in the free space of a page, as SQLite does once in a while. */
  const leave = (text: string) =>
    execute(
      dataDir,
      'PRAGMA secure_delete = OFF',
      `INSERT INTO agent_directories (url, source, keys) VALUES ('left', 'pinned', '..${text}..')`,
      "DELETE FROM agent_directories WHERE url = 'left'",
    );
  /** Keeps a text in a row that no erasure deletes. */
  const keepRow = (text: string) =>
    execute(
      dataDir,
      `INSERT INTO agent_directories (url, source, keys) VALUES ('kept', 'pinned', '${text}')`,
    );
  const dropRow = () =>
    execute(dataDir, 'PRAGMA secure_delete = ON', "DELETE FROM agent_directories WHERE url = 'kept'");
  return {
    database,
    tenant,
    counts,
    eraser,
    visit,
    leave,
    keepRow,
    dropRow,
    restart,
    leaveBytes: () => leave(DEVICE),
    erase: async () => {
      await visit();
      return eraser.erase(requestOf(tenant, { target: { ...NOTHING, durables: [DEVICE] } }));
    },
    at: (to: number) => {
      now = to;
    },
    withLog: (truncateLog: () => Promise<boolean>) => {
      truncate = truncateLog;
    },
  };
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
    await leaveBytes();
    expect(await erase()).toMatchObject({ incomplete: true });
    at(MIDNIGHT + DAY + 3 * HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([true]);
    expect(counts.vacuums).toBe(1);
    at(MIDNIGHT + 2 * DAY + 2 * HOUR);
    expect(await resumeIncomplete(eraser)).toEqual([false]);
    expect(counts.vacuums).toBe(2);
  }));

it.each(['case_hash', 'sealed'] as const)('the %s of an erased contest is looked for too', (column) =>
  withPlace(async ({ database, visit, erase, leave }) => {
    await visit();
    const fields = { case_hash: 'H'.repeat(43), sealed: 'S'.repeat(48) };
    await insert(database, contestOf({ kid: KID, requestId: 'req_v1', durable: DEVICE }));
    await database.transaction(async (tx) => {
      await tx('contests').update({ ...fields, sealed: `${fields.sealed}${'T'.repeat(500)}` });
    });
    await leave(fields[column]);
    expect(await erase()).toMatchObject({ incomplete: true });
  }),
);

// Guards against: the receipt said complete while the file still held the wrapped key of the erased person.
it.each(['wrapped_key', 'salt', 'principal_id', 'wrapped_principal_id'])(
  'the %s of an erased principal is looked for too',
  async (column) =>
    withPlace(async ({ database, tenant, eraser, leave }) => {
      const id = 'person-1';
      const ref = principalRef(tenant.principalKey, id);
      const { service } = createConsent({ database, clock: Date.now, random: randomBytes });
      const body = { principalId: id, purposes: ['device-identification'] };
      await service.write(tenant, {
        action: 'grant',
        body,
        source: 'backend',
        caller: 'k',
        idempotencyKey: null,
      });
      const keys = { kid: KID, principal: ref };
      const session = { hash: 'h', wrapped_principal_id: 'W'.repeat(300), key_id: 'key' };
      await database.transaction(async (tx) => {
        await tx('consent_openings').update({ principal_id: 'P'.repeat(300) });
        await tx('principal_sessions').insert({ ...keys, ...session, expires_at: Date.now() + HOUR });
      });
      for (const table of ['consent_principals', 'consent_openings', 'principal_sessions']) {
        const row = (await database.read(table).where(keys).first()) as Record<string, string>;
        if (row[column] !== undefined) await leave(row[column]);
      }
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

// Guards against: the search found the id, the file was rewritten, and the receipt said complete with the id still in it.
it('an id that is still in the rewritten file has failed, until it is gone', () =>
  withPlace(
    async ({ erase, keepRow, dropRow, counts, eraser, at }) => {
      await keepRow(DEVICE);
      const receipt = await erase();
      expect(receipt).toMatchObject({ incomplete: true });
      expect(receipt.scopes.at(-1)).toMatchObject({ scope: 'storage', action: 'failed' });
      expect(receipt.scopes.find(({ scope }) => scope === 'decisions')).toMatchObject({ action: 'erased' });
      at(NOON + HOUR);
      expect(await resumeIncomplete(eraser)).toEqual([true]);
      expect(counts.vacuums).toBe(1);
      expect((await eraser.resume()).receipts).toMatchObject([{ incomplete: true }]);
      expect(counts.vacuums).toBe(2);
      await dropRow();
      expect(await resumeIncomplete(eraser)).toEqual([false]);
      expect(counts.vacuums).toBe(2);
      const { scopes } = (await eraser.status(receipt.receiptId)) ?? {};
      expect(scopes?.at(-1)).toEqual({ scope: 'storage', action: 'erased', count: 1 });
    },
    { largeFile: 2 ** 30 },
  ));

// Guards against: after a search that threw the ids were lost, and only rewriting a large file in its window was left.
it('a search that fails is repeated with the same ids', () =>
  withPlace(
    async ({ database, erase, eraser, counts, at, withLog }) => {
      withLog(() => Promise.reject(new Error('no disk')));
      expect(await erase()).toMatchObject({ incomplete: true });
      expect(eraser.faults).toHaveLength(1);
      withLog(() => database.truncateLog());
      at(NOON + HOUR);
      expect(await resumeIncomplete(eraser)).toEqual([false]);
      expect(counts.vacuums).toBe(0);
    },
    { window: null },
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
