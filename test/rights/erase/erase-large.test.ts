import { cpSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { erasuresFile } from '../../../src/rights/erase/erasure-log.ts';
import { reapplyErasures } from '../../../src/rights/erase/reapply.ts';
import type { ErasureReceipt } from '../../../src/schema/rights.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { initGpd } from '../../support/server.ts';
import { eraserOn, open, REAPPLY, record, requestOf, tombstonesOf } from '../support/eraser.ts';

/** An erasure of many visits, from its answer to its last step. */

const IDS = Array.from({ length: 12 }, (_, i) => `many-${i}`);
const LARGE = { largeAbove: 5, patienceMs: 0 };
const actionsOf = ({ scopes }: ErasureReceipt) =>
  Object.fromEntries(scopes.map(({ scope, action, count }) => [scope, `${action} ${count}`]));
const rowsLeft = (database: Database): Promise<string[]> =>
  database.read('decisions').where({ kid: KID }).pluck('request_id');

/** A database in which the first step waits until it is let go. */
function waitingAtSteps(database: Database) {
  let letGo = (): void => {};
  let first: Promise<void> | null = new Promise((resolve) => {
    letGo = resolve;
  });
  const transaction: Database['transaction'] = async (work) => {
    const isStep = (await database.read('erasures').where({ step: 'logged' })).length > 0;
    const wait = isStep ? first : null;
    if (isStep) first = null;
    await wait;
    return database.transaction(work);
  };
  return { ...database, transaction, letGo };
}

async function openWithVisits() {
  const { dataDir } = await initGpd();
  const opened = await open(dataDir);
  for (const id of IDS) await record(opened.database, id);
  return { dataDir, ...opened };
}

it('is pending when it is answered, and the steps complete it', async () => {
  const { dataDir, database, tenant } = await openWithVisits();
  const heldSteps = waitingAtSteps(database);
  const eraser = eraserOn(heldSteps, dataDir, Date.now, LARGE);
  const receipt = await eraser.erase(requestOf(tenant));
  expect(receipt).toMatchObject({ incomplete: true });
  expect(actionsOf(receipt)).toMatchObject({ decisions: 'pending 0', sightings: 'pending 1' });
  expect(await tombstonesOf(database, dataDir)).toMatchObject([{ receiptId: receipt.receiptId }]);
  expect(await rowsLeft(database)).toHaveLength(12);
  // Beside its steps the same device comes back, and the sweep leaves to the process what it has in hand.
  await record(database, 'new');
  expect(await eraser.resume()).toEqual({ receipts: [], failures: [] });
  heldSteps.letGo();
  await vi.waitFor(
    async () => expect(await eraser.status(receipt.receiptId)).toMatchObject({ incomplete: false }),
    { interval: 10, timeout: 10_000 },
  );
  const done = (await eraser.status(receipt.receiptId)) as ErasureReceipt;
  expect(actionsOf(done)).toMatchObject({ decisions: 'erased 12', links: 'none 0' });
  expect(await rowsLeft(database)).toEqual(['req_new']);
  const bytes = readFileSync(join(dataDir, 'gpd.db'));
  expect(IDS.filter((id) => bytes.includes(`req_${id}`))).toEqual([]);
  expect(eraser.faults).toEqual([]);
  await database.close();
});

it('is complete with its answer where the steps take no longer than an answer may', async () => {
  const { dataDir, database, tenant } = await openWithVisits();
  const patient = eraserOn(database, dataDir, Date.now, { ...LARGE, patienceMs: Number.POSITIVE_INFINITY });
  const receipt = await patient.erase(requestOf(tenant));
  expect(receipt).toMatchObject({ incomplete: false });
  expect(actionsOf(receipt)).toMatchObject({ decisions: 'erased 12', 'visitor-index': 'erased 1' });
  expect(await database.read('erasing')).toEqual([]);
  await database.close();
});

it('goes on after a stop in the middle, and after a tombstone that could not be written', async () => {
  const { dataDir, database, tenant } = await openWithVisits();
  mkdirSync(erasuresFile(dataDir));
  const first = eraserOn(database, dataDir, Date.now, LARGE);
  const receipt = await first.erase(requestOf(tenant));
  expect(receipt).toMatchObject({ incomplete: true });
  expect(first.faults).toHaveLength(1);
  expect(await rowsLeft(database)).toHaveLength(12);
  rmSync(erasuresFile(dataDir), { recursive: true });
  await first.stop();
  // It has stopped: the tombstone is written, and no step taken.
  expect(await first.resume()).toMatchObject({ receipts: [{ incomplete: true }], failures: [] });
  expect(await rowsLeft(database)).toHaveLength(12);
  await database.close();

  const again = await open(dataDir);
  const second = eraserOn(again.database, dataDir, Date.now, LARGE);
  expect((await second.resume()).receipts).toMatchObject([
    { receiptId: receipt.receiptId, incomplete: false },
  ]);
  expect(await rowsLeft(again.database)).toEqual([]);
  expect(readFileSync(join(dataDir, 'gpd.db')).includes('req_many-3')).toBe(false);
  expect(await tombstonesOf(again.database, dataDir)).toMatchObject([{ receiptId: receipt.receiptId }]);
  await again.database.close();
});

it('is applied again by a restore, whether the copy is older or has its receipt', async () => {
  const { dataDir, database, tenant } = await openWithVisits();
  const copy = async (name: string, from: Database): Promise<string> => {
    await from.truncateLog();
    const path = join(tempDir(name), 'gpd.db');
    cpSync(join(dataDir, 'gpd.db'), path);
    return path;
  };
  const older = await copy('older', database);
  const stopped = eraserOn(database, dataDir, Date.now, LARGE);
  await stopped.stop();
  const { receiptId } = await stopped.erase(requestOf(tenant));
  const startedCopy = await copy('begun', database);
  await database.close();
  for (const [path, applied] of [
    [older, 1],
    [startedCopy, 0],
  ] as const) {
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(dataDir, `gpd.db${suffix}`), { force: true });
    cpSync(path, join(dataDir, 'gpd.db'));
    const restored = await open(dataDir);
    const eraser = eraserOn(restored.database, dataDir, Date.now, {
      ...LARGE,
      patienceMs: Number.POSITIVE_INFINITY,
    });
    expect(await reapplyErasures({ ...REAPPLY, ...restored, dataDir, eraser }), path).toBe(applied);
    await eraser.resume();
    expect(await eraser.status(receiptId), path).toMatchObject({ incomplete: false });
    expect(await rowsLeft(restored.database), path).toEqual([]);
    await restored.database.close();
  }
});
