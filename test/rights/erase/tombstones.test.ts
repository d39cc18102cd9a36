import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { StoredErasure } from '../../../src/rights/erase/receipts-store.ts';
import {
  appendTombstone,
  buryTenant,
  readTombstones,
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

const idsOf = async (dataDir: string): Promise<string[]> =>
  (await readTombstones(dataDir)).map(({ receiptId }) => receiptId);

it.each([1, 300, 1500, 6000])('a torn line of %i requests takes no other with it', async (requests) => {
  const dataDir = tempDir('data');
  await appendTombstone(dataDir, makeErasure('era_1'));
  await appendTombstone(dataDir, makeErasure('era_2', requests));
  const file = tombstoneFile(dataDir);
  writeFileSync(file, readFileSync(file).subarray(0, -10));
  await appendTombstone(dataDir, makeErasure('era_3'));
  await buryTenant(dataDir, 'gone', NOW);
  expect(await idsOf(dataDir)).toEqual(['era_1', 'era_3', `off_gone_${NOW}`]);
  expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(4);
});

it.each([65_535, 65_536, 65_537, 131_072, 200_000])(
  'of a file whose first line is torn after %i bytes nothing is left',
  async (bytes) => {
    const dataDir = tempDir('data');
    appendFileSync(tombstoneFile(dataDir), 'x'.repeat(bytes));
    await appendTombstone(dataDir, makeErasure('era_1'));
    expect(await idsOf(dataDir)).toEqual(['era_1']);
  },
);

it.each([65_534, 65_535, 65_536, 65_537])(
  'a line before a torn one of %i bytes is whole, wherever the pieces meet',
  async (bytes) => {
    const dataDir = tempDir('data');
    await appendTombstone(dataDir, makeErasure('era_1'));
    appendFileSync(tombstoneFile(dataDir), 'x'.repeat(bytes));
    await appendTombstone(dataDir, makeErasure('era_2'));
    expect(await idsOf(dataDir)).toEqual(['era_1', 'era_2']);
  },
);
