import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { DAY, isoTime } from '../../../src/lib/clock.ts';
import { createLineCollector, recordEnded } from '../../../src/rights/erase/ended-store.ts';
import { KEEP_NOTHING } from '../../../src/rights/erase/erase-service.ts';
import {
  appendRemoval,
  appendTombstone,
  dropOldErasureLines,
  type ErasureLogAccess,
  erasuresFile,
  scanErasureLog,
} from '../../../src/rights/erase/erasure-log-service.ts';
import { insertErasure, type StoredErasure } from '../../../src/rights/erase/receipts-store.ts';
import { addTenant } from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';
import { NOW } from '../../support/make.ts';
import { readErasures } from '../support/eraser.ts';

/** erasures.log, and what the database knows of it. */

function createErasure(receiptId: string, requests = 1): StoredErasure {
  const refs = Array.from({ length: requests }, (_, i) => `${i}`.padStart(43, 'r'));
  return {
    receiptId,
    kid: 'acme',
    subject: 'ref',
    requestedBy: 'subject',
    erasedAt: NOW,
    scopes: [{ scope: 'storage', action: 'pending', count: 1 }],
    refs: refs.map((ref) => ({ kind: 'request', ref })),
    keep: KEEP_NOTHING,
    state: 'open',
    filesCleanAt: null,
  };
}

let database: Database;
beforeAll(async () => {
  database = await openDatabase({ location: join(tempDir('db'), 'gpd.db'), create: true });
  await migrate(database);
});
afterAll(() => database.close());

/** A log that its database knows nothing of yet. */
async function createLog(): Promise<ErasureLogAccess> {
  await database.transaction((tx) => tx('meta').delete());
  return { database, dataDir: tempDir('data'), logKey: Buffer.alloc(32, 1) };
}
const idsOf = async (logAccess: ErasureLogAccess): Promise<string[]> =>
  (await readErasures(logAccess)).tombstones.map(({ receiptId }) => receiptId);
const problemOf = async (logAccess: ErasureLogAccess): Promise<string | null> =>
  (await readErasures(logAccess)).problem;

it.each([1, 6000])('a torn line of %i requests takes no other with it', async (requests) => {
  const logAccess = await createLog();
  const { dataDir } = logAccess;
  await appendTombstone(logAccess, createErasure('era_1'));
  await appendTombstone(logAccess, createErasure('era_2', requests));
  // The process that died in the middle of it had told nobody.
  const next = await createLog();
  const file = erasuresFile(next.dataDir);
  writeFileSync(file, readFileSync(erasuresFile(dataDir)).subarray(0, -10));
  await appendTombstone(next, createErasure('era_3'));
  await appendRemoval(next, 'gone', NOW);
  expect(await problemOf(next)).toBeNull();
  expect(await idsOf(next)).toEqual(['era_1', 'era_3', `off_gone_${NOW}`]);
  expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4);
});

describe('a line that somebody removed or changed', () => {
  async function createThree(): Promise<{ logAccess: ErasureLogAccess; file: string; lines: string[] }> {
    const logAccess = await createLog();
    for (const id of ['era_1', 'era_2', 'era_3']) await appendTombstone(logAccess, createErasure(id));
    const file = erasuresFile(logAccess.dataDir);
    return { logAccess, file, lines: readFileSync(file, 'utf8').trimEnd().split('\n') };
  }
  const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

  it('is reported by its number, and the readable lines are still there', async () => {
    const { logAccess, file, lines } = await createThree();
    expect(await problemOf(logAccess)).toBeNull();
    const [one = '', two = '', three = ''] = lines;
    const changed = two.replace('"subject":"ref"', '"subject":"fer"');
    for (const [damagedLines, problem] of [
      [[two, three], 'line 1 is missing'],
      [[one, three], 'line 2 is missing'],
      [[one, two], '1 lines are missing at the end'],
      [[], '3 lines are missing at the end'],
      [[one, changed, three], 'line 2 was changed'],
      [[one, three, two], 'line 2 is missing'],
      [lines.map((line) => line.replace(/,"n".*$/, '}')), 'line 1 is damaged'],
      [[...lines, '{}'], 'line 4 is damaged'],
    ] as const) {
      writeFileSync(file, text(damagedLines));
      expect(await problemOf(logAccess)).toBe(problem);
    }
    writeFileSync(file, text([one, three]));
    expect(await idsOf(logAccess)).toEqual(['era_1', 'era_3']);
    writeFileSync(file, text(lines));
    expect(await problemOf(logAccess)).toBeNull();
  });

  it('at the end is missed for good: its number is not given again', async () => {
    const { logAccess, file, lines } = await createThree();
    writeFileSync(file, text(lines.slice(0, 1)));
    await appendTombstone(logAccess, createErasure('era_4'));
    expect(await problemOf(logAccess)).toBe('lines 2 to 3 are missing');
    expect(await idsOf(logAccess)).toEqual(['era_1', 'era_4']);
  });

  it('is not hidden by a count that was set back without the key', async () => {
    const { logAccess, file, lines } = await createThree();
    writeFileSync(file, text(lines.slice(0, 2)));
    await database.transaction(async (tx) => {
      const [count] = await tx('meta').where({ name: 'erasures-count' }).pluck('value');
      const value = String(count).replace('"n":3', '"n":2');
      await tx('meta').where({ name: 'erasures-count' }).update({ value });
    });
    expect(await problemOf(logAccess)).toBe('the count that the database keeps was changed');
  });
});

it('lines that no backup can need are dropped, and the file says how many until when', async () => {
  const logAccess = await createLog();
  for (const [id, days] of Object.entries({ era_1: 800, era_2: 740, era_3: 100 }))
    await appendTombstone(logAccess, { ...createErasure(id), erasedAt: NOW - days * DAY });
  await dropOldErasureLines(logAccess, NOW - 900 * DAY);
  expect(await idsOf(logAccess)).toHaveLength(3);
  await dropOldErasureLines(logAccess, NOW - 730 * DAY);
  expect(await idsOf(logAccess)).toEqual(['era_3']);
  expect(await scanErasureLog(logAccess)).toEqual({
    problem: null,
    last: 3,
    droppedUntil: isoTime(NOW - 740 * DAY),
  });
  await appendTombstone(logAccess, createErasure('era_4'));
  expect(await scanErasureLog(logAccess)).toMatchObject({ problem: null, last: 4 });
});

describe('what the database and the file know of each other', () => {
  /** Lines of the one tenant that there is. */
  async function lostOf(logAccess: ErasureLogAccess) {
    const lostLines = await createLineCollector(database, NOW);
    await scanErasureLog(logAccess, lostLines.collect);
    return lostLines;
  }

  it('an erasure whose line is gone is in the file after the next sweep, once', async () => {
    const kid = await addTenant(database, 'swept');
    const logAccess = await createLog();
    const rows = [
      { ...createErasure('era_there'), kid, state: 'logged' as const },
      { ...createErasure('era_lost'), kid, state: 'done' as const, filesCleanAt: NOW },
      // It writes its line itself.
      { ...createErasure('era_rows'), kid },
      // It had nothing to erase.
      { ...createErasure('era_nothing'), kid, state: 'done' as const, filesCleanAt: NOW, scopes: [] },
      {
        ...createErasure('era_old'),
        kid,
        state: 'done' as const,
        filesCleanAt: NOW,
        erasedAt: NOW - 31 * DAY,
      },
    ];
    for (const row of rows) await database.transaction((tx) => insertErasure(tx, row));
    await appendTombstone(logAccess, rows[0] as StoredErasure);
    await Promise.all([recordEnded(logAccess, NOW), recordEnded(logAccess, NOW)]);
    expect(await idsOf(logAccess)).toEqual(['era_there', 'era_lost']);
    const file = erasuresFile(logAccess.dataDir);
    writeFileSync(file, `${readFileSync(file, 'utf8').split('\n')[0]}\n`);
    await recordEnded(logAccess, NOW);
    expect(await idsOf(logAccess)).toEqual(['era_there', 'era_lost']);
    expect(await problemOf(logAccess)).toBe('line 2 is missing');
  });

  it('a forged line of an erasure keeps the genuine one out of no file', async () => {
    const kid = await addTenant(database, 'suppressed');
    const logAccess = await createLog();
    const row = { ...createErasure('era_forged'), kid, state: 'logged' as const };
    await database.transaction((tx) => insertErasure(tx, row));
    await appendTombstone(logAccess, row);
    await appendTombstone(logAccess, { ...createErasure('era_other'), kid });
    const file = erasuresFile(logAccess.dataDir);
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"refs":\[[^\]]*\]/, '"refs":[]'));
    await recordEnded(logAccess, NOW);
    expect((await idsOf(logAccess)).filter((id) => id === 'era_forged')).toHaveLength(2);
  });

  it('a line is lost where the database has no receipt, and of the tenant alone that has the kid now', async () => {
    const kid = await addTenant(database, 'later');
    const { created_at: createdAt } = await database.read('tenants').where({ kid }).first();
    const logAccess = await createLog();
    const since = Number(createdAt);
    for (const [id, erasedAt] of Object.entries({ era_before: since - 1, era_after: since }))
      await appendTombstone(logAccess, { ...createErasure(id), kid, erasedAt });
    await appendRemoval(logAccess, kid, since - 1);
    const { people, removals } = await lostOf(logAccess);
    expect([[...people.keys()], removals]).toEqual([['era_after'], []]);
  });

  it('a forged line stands in for no genuine one of the same receipt', async () => {
    const kid = await addTenant(database, 'forged');
    const logAccess = await createLog();
    const erasedAt = NOW + 365 * DAY;
    await appendTombstone(logAccess, { ...createErasure('era_twice', 2), kid, erasedAt });
    const file = erasuresFile(logAccess.dataDir);
    const genuine = readFileSync(file, 'utf8');
    const forged = genuine.replace(/"refs":\[.*\]/, '"refs":[]');
    for (const text of [genuine + forged, forged + genuine]) {
      writeFileSync(file, text);
      expect((await lostOf(logAccess)).people.get('era_twice')?.refs).toHaveLength(2);
    }
  });
});
