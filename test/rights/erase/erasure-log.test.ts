import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { DAY, isoTime } from '../../../src/lib/clock.ts';
import { createLostLines, recordEnded } from '../../../src/rights/erase/ended.ts';
import {
  appendRemoval,
  appendTombstone,
  dropOldErasureLines,
  erasuresFile,
  type OutsideLog,
  scanErasureLog,
} from '../../../src/rights/erase/erasure-log.ts';
import { insertErasure, type StoredErasure } from '../../../src/rights/erase/receipts.ts';
import { addTenant } from '../../db/contract/database.ts';
import { tempDir } from '../../support/command.ts';
import { NOW } from '../../support/make.ts';
import { readErasures } from '../support/eraser.ts';

/** erasures.log, and what the database knows of it. */

function createErasure(receiptId: string, requests = 1): StoredErasure {
  return {
    receiptId,
    kid: 'acme',
    subject: 'ref',
    requestedBy: 'subject',
    erasedAt: NOW,
    scopes: [],
    refs: Array.from({ length: requests }, (_, i) => ({ kind: 'request', ref: `${i}`.padStart(43, 'r') })),
    keep: { openContests: false, override: false },
    step: 'rows',
  };
}

let database: Database;
beforeAll(async () => {
  database = await openDatabase({ location: join(tempDir('db'), 'gpd.db'), create: true });
  await migrate(database);
});
afterAll(() => database.close());

/** A log that its database knows nothing of yet. */
async function createLog(): Promise<OutsideLog> {
  await database.transaction((tx) => tx('meta').delete());
  return { database, dataDir: tempDir('data'), logKey: Buffer.alloc(32, 1) };
}
const idsOf = async (outside: OutsideLog): Promise<string[]> =>
  (await readErasures(outside)).tombstones.map(({ receiptId }) => receiptId);
const problemOf = async (outside: OutsideLog): Promise<string | null> =>
  (await readErasures(outside)).problem;

it.each([1, 6000])('a torn line of %i requests takes no other with it', async (requests) => {
  const outside = await createLog();
  const { dataDir } = outside;
  await appendTombstone(outside, createErasure('era_1'));
  await appendTombstone(outside, createErasure('era_2', requests));
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
  async function createThree(): Promise<{ outside: OutsideLog; file: string; lines: string[] }> {
    const outside = await createLog();
    for (const id of ['era_1', 'era_2', 'era_3']) await appendTombstone(outside, createErasure(id));
    const file = erasuresFile(outside.dataDir);
    return { outside, file, lines: readFileSync(file, 'utf8').trimEnd().split('\n') };
  }
  const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

  it('is reported by its number, and the readable lines are still there', async () => {
    const { outside, file, lines } = await createThree();
    expect(await problemOf(outside)).toBeNull();
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
      expect(await problemOf(outside)).toBe(problem);
    }
    writeFileSync(file, text([one, three]));
    expect(await idsOf(outside)).toEqual(['era_1', 'era_3']);
    writeFileSync(file, text(lines));
    expect(await problemOf(outside)).toBeNull();
  });

  it('at the end is missed for good: its number is not given again', async () => {
    const { outside, file, lines } = await createThree();
    writeFileSync(file, text(lines.slice(0, 1)));
    await appendTombstone(outside, createErasure('era_4'));
    expect(await problemOf(outside)).toBe('lines 2 to 3 are missing');
    expect(await idsOf(outside)).toEqual(['era_1', 'era_4']);
  });

  it('is not hidden by a count that was set back without the key', async () => {
    const { outside, file, lines } = await createThree();
    const [first] = await database.read('meta').where({ name: 'erasures-count' }).pluck('value');
    writeFileSync(file, text(lines.slice(0, 2)));
    const forged = String(first).replace('"n":3', '"n":2');
    await database.transaction((tx) =>
      tx('meta').where({ name: 'erasures-count' }).update({ value: forged }),
    );
    expect(await problemOf(outside)).toBe('the count that the database keeps was changed');
  });
});

it('lines that no backup can need are dropped, and the file says how many until when', async () => {
  const outside = await createLog();
  for (const [id, days] of [
    ['era_1', 800],
    ['era_2', 740],
    ['era_3', 100],
  ] as const)
    await appendTombstone(outside, { ...createErasure(id), erasedAt: NOW - days * DAY });
  await dropOldErasureLines(outside, NOW - 900 * DAY);
  expect(await idsOf(outside)).toHaveLength(3);
  await dropOldErasureLines(outside, NOW - 730 * DAY);
  expect(await idsOf(outside)).toEqual(['era_3']);
  expect(await scanErasureLog(outside)).toEqual({
    problem: null,
    last: 3,
    droppedUntil: isoTime(NOW - 740 * DAY),
  });
  await appendTombstone(outside, createErasure('era_4'));
  expect(await scanErasureLog(outside)).toMatchObject({ problem: null, last: 4 });
});

describe('what the database and the file know of each other', () => {
  /** Lines of the one tenant that there is. */
  async function lostOf(outside: OutsideLog) {
    const lostLines = await createLostLines(database, NOW);
    await scanErasureLog(outside, lostLines.take);
    return [...lostLines.people.keys(), ...lostLines.removals.map(({ receiptId }) => receiptId)];
  }

  it('an erasure whose line is gone is in the file after the next sweep, once', async () => {
    const kid = await addTenant(database, 'swept');
    const outside = await createLog();
    const rows = [
      { ...createErasure('era_there'), kid, step: 'logged' as const },
      { ...createErasure('era_lost'), kid, step: 'done' as const, doneAt: NOW },
      // It writes its line itself.
      { ...createErasure('era_rows'), kid },
      // It had nothing to erase.
      { ...createErasure('era_nothing'), kid, step: 'done' as const },
      { ...createErasure('era_old'), kid, step: 'done' as const, doneAt: NOW, erasedAt: NOW - 31 * DAY },
    ];
    for (const row of rows) await database.transaction((tx) => insertErasure(tx, row));
    await appendTombstone(outside, rows[0] as StoredErasure);
    await Promise.all([recordEnded(outside, NOW), recordEnded(outside, NOW)]);
    expect(await idsOf(outside)).toEqual(['era_there', 'era_lost']);
    const file = erasuresFile(outside.dataDir);
    writeFileSync(file, `${readFileSync(file, 'utf8').split('\n')[0]}\n`);
    await recordEnded(outside, NOW);
    expect(await idsOf(outside)).toEqual(['era_there', 'era_lost']);
    expect(await problemOf(outside)).toBe('line 2 is missing');
  });

  it('a forged line of an erasure keeps the genuine one out of no file', async () => {
    const kid = await addTenant(database, 'suppressed');
    const outside = await createLog();
    const row = { ...createErasure('era_forged'), kid, step: 'logged' as const };
    await database.transaction((tx) => insertErasure(tx, row));
    await appendTombstone(outside, row);
    await appendTombstone(outside, { ...createErasure('era_other'), kid });
    const file = erasuresFile(outside.dataDir);
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"refs":\[[^\]]*\]/, '"refs":[]'));
    await recordEnded(outside, NOW);
    expect((await idsOf(outside)).filter((id) => id === 'era_forged')).toHaveLength(2);
  });

  it('a line is lost where the database has no receipt, and of the tenant alone that has the kid now', async () => {
    const kid = await addTenant(database, 'later');
    const { created_at: createdAt } = await database.read('tenants').where({ kid }).first();
    const outside = await createLog();
    for (const [id, erasedAt] of [
      ['era_before', Number(createdAt) - 1],
      ['era_after', Number(createdAt)],
    ] as const)
      await appendTombstone(outside, { ...createErasure(id), kid, erasedAt });
    await appendRemoval(outside, kid, Number(createdAt) - 1);
    expect(await lostOf(outside)).toEqual(['era_after']);
  });

  it('a forged line stands in for no genuine one of the same receipt', async () => {
    const kid = await addTenant(database, 'forged');
    const outside = await createLog();
    const erasedAt = NOW + 365 * DAY;
    await appendTombstone(outside, { ...createErasure('era_twice', 2), kid, erasedAt });
    const file = erasuresFile(outside.dataDir);
    const genuine = readFileSync(file, 'utf8');
    const forged = genuine.replace(/"refs":\[.*\]/, '"refs":[]');
    for (const text of [genuine + forged, forged + genuine]) {
      writeFileSync(file, text);
      const lostLines = await createLostLines(database, NOW);
      await scanErasureLog(outside, lostLines.take);
      expect(lostLines.people.get('era_twice')?.refs).toHaveLength(2);
    }
  });
});
