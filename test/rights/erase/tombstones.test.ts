import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../src/db/db.ts';
import { migrate } from '../../../src/db/migrate.ts';
import type { StoredErasure } from '../../../src/rights/erase/receipts.ts';
import {
  appendTombstone,
  buryTenant,
  type OutsideLog,
  readOutsideLog,
  tombstoneFile,
} from '../../../src/rights/erase/tombstone-files.ts';
import { tempDir } from '../../support/command.ts';
import { NOW } from '../../support/make.ts';

/** erasures.log after a write that a full disk or a crash cut short. */

function makeErasure(receiptId: string, requests = 1): StoredErasure {
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
async function makeLog(): Promise<OutsideLog> {
  await database.transaction((tx) => tx('meta').delete());
  return { database, dataDir: tempDir('data'), logKey: Buffer.alloc(32, 1) };
}
const idsOf = async (outside: OutsideLog): Promise<string[]> =>
  (await readOutsideLog(outside)).tombstones.map(({ receiptId }) => receiptId);
const problemOf = async (outside: OutsideLog): Promise<string | null> =>
  (await readOutsideLog(outside)).problem;

it.each([1, 300, 1500, 6000])('a torn line of %i requests takes no other with it', async (requests) => {
  const outside = await makeLog();
  const { dataDir } = outside;
  await appendTombstone(outside, makeErasure('era_1'));
  await appendTombstone(outside, makeErasure('era_2', requests));
  // The process that died in the middle of it had told nobody.
  const next = await makeLog();
  const file = tombstoneFile(next.dataDir);
  writeFileSync(file, readFileSync(tombstoneFile(dataDir)).subarray(0, -10));
  await appendTombstone(next, makeErasure('era_3'));
  await buryTenant(next, 'gone', NOW);
  expect(await problemOf(next)).toBeNull();
  expect(await idsOf(next)).toEqual(['era_1', 'era_3', `off_gone_${NOW}`]);
  expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4);
});

it.each([65_535, 65_536, 65_537, 131_072, 200_000])(
  'of a file whose first line is torn after %i bytes nothing is left',
  async (bytes) => {
    const outside = await makeLog();
    const { dataDir } = outside;
    appendFileSync(tombstoneFile(dataDir), 'x'.repeat(bytes));
    await appendTombstone(outside, makeErasure('era_1'));
    expect(await idsOf(outside)).toEqual(['era_1']);
  },
);

it.each([65_534, 65_535, 65_536, 65_537])(
  'a line before a torn one of %i bytes is whole, wherever the pieces meet',
  async (bytes) => {
    const outside = await makeLog();
    const { dataDir } = outside;
    await appendTombstone(outside, makeErasure('era_1'));
    appendFileSync(tombstoneFile(dataDir), 'x'.repeat(bytes));
    await appendTombstone(outside, makeErasure('era_2'));
    expect(await idsOf(outside)).toEqual(['era_1', 'era_2']);
  },
);

describe('a line that somebody took away or changed', () => {
  async function makeThree(): Promise<{ outside: OutsideLog; file: string; lines: string[] }> {
    const outside = await makeLog();
    for (const id of ['era_1', 'era_2', 'era_3']) await appendTombstone(outside, makeErasure(id));
    const file = tombstoneFile(outside.dataDir);
    return { outside, file, lines: readFileSync(file, 'utf8').trimEnd().split('\n') };
  }
  const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');

  it('is told by its number, and what can be read is still there', async () => {
    const { outside, file, lines } = await makeThree();
    expect(await problemOf(outside)).toBeNull();
    const [one = '', two = '', three = ''] = lines;
    const changed = two.replace('"subject":"ref"', '"subject":"fer"');
    for (const [left, problem] of [
      [[two, three], /^line 1 was changed/],
      [[one, three], /^line 2 was changed/],
      [[one, two], /^1 lines are missing at the end$/],
      [[], /^3 lines are missing at the end$/],
      [[one, changed, three], /^line 2 was changed/],
      [[one, three, two], /^line 2 was changed/],
      [
        [...lines.map((line) => line.replace(/,"mac".*$/, '}')), three.replace(/,"mac".*$/, '}')],
        /^line 4 is damaged/,
      ],
      [[...lines, '{}'], /^line 4 is damaged/],
    ] as const) {
      writeFileSync(file, text(left));
      expect(await problemOf(outside)).toMatch(problem);
    }
    writeFileSync(file, text([one, three]));
    expect(await idsOf(outside)).toEqual(['era_1', 'era_3']);
    writeFileSync(file, text(lines));
    expect(await problemOf(outside)).toBeNull();
  });

  it('of a log from before the chain is told once a line was added', async () => {
    const { lines } = await makeThree();
    const bare = lines.map((line) => line.replace(/,"mac".*$/, '}'));
    const outside = await makeLog();
    const file = tombstoneFile(outside.dataDir);
    writeFileSync(file, text(bare));
    expect(await problemOf(outside)).toBeNull();
    await appendTombstone(outside, makeErasure('era_4'));
    expect(await problemOf(outside)).toBeNull();
    expect(await idsOf(outside)).toEqual(['era_1', 'era_2', 'era_3', 'era_4']);
    const last = readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) ?? '';
    writeFileSync(file, text([...bare.slice(1), last]));
    expect(await problemOf(outside)).toMatch(/^line 3 was changed/);
  });

  it('is not hidden by a count that was set back without the key', async () => {
    const { outside, file, lines } = await makeThree();
    const [first] = await database.read('meta').where({ name: 'erasures-head' }).pluck('value');
    writeFileSync(file, text(lines.slice(0, 2)));
    const forged = String(first).replace('"lines":3', '"lines":2');
    await database.transaction((tx) => tx('meta').where({ name: 'erasures-head' }).update({ value: forged }));
    expect(await problemOf(outside)).toBe('the count that the database keeps was changed');
  });
});
