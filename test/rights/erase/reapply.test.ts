import { cpSync, existsSync, mkdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { rightsRef } from '../../../src/audit/reference.ts';
import { endHold, placeHolds } from '../../../src/console/holds-service.ts';
import type { Database } from '../../../src/db/db.ts';
import { insertOverride } from '../../../src/rights/contests/store.ts';
import { NOTHING } from '../../../src/rights/erase/erasure.ts';
import { makeHeldErasures } from '../../../src/rights/erase/held-service.ts';
import { listHolds, placeHold, releaseHold } from '../../../src/rights/erase/hold-store.ts';
import { reapplyErasures } from '../../../src/rights/erase/reapply-service.ts';
import { recordEnded } from '../../../src/rights/erase/tombstone-files.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { NOW } from '../../support/make.ts';
import { initGpd } from '../../support/server.ts';
import { eraserOn, open, REAPPLY, record, requestOf } from '../support/eraser.ts';

/** What an older backup brings back is found again by every table that names it. */

const HOLD = { kid: KID, durable: 'mine', scope: 'override' as const };

/** A backup of this moment, and what brings it back. */
async function backUp(database: Database, dataDir: string): Promise<() => void> {
  await database.truncateLog();
  const old = join(tempDir('old'), 'gpd.db');
  cpSync(join(dataDir, 'gpd.db'), old);
  return () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(dataDir, `gpd.db${suffix}`), { force: true });
    cpSync(old, join(dataDir, 'gpd.db'));
  };
}

it('finds a request that only an override and a waiting erasure name', async () => {
  const { dataDir } = await initGpd();
  const first = await open(dataDir);
  await record(first.database, 'a');
  await first.database.transaction(async (tx) => {
    await insertOverride(tx, { kid: KID, durable: 'mine', requestId: 'req_a', at: NOW });
    await placeHold(tx, { ...HOLD, basis: 'case 12', createdAt: NOW });
  });
  const eraser = eraserOn(first.database, dataDir);
  await eraser.erase(requestOf(first.tenant, { target: { ...NOTHING, requests: ['req_a'] } }));
  await first.database.transaction((tx) => releaseHold(tx, HOLD, NOW));
  const bringBack = await backUp(first.database, dataDir);
  const held = makeHeldErasures({ ...first, eraser, clock: Date.now });
  expect(await held.resume()).toHaveLength(1);
  expect(await first.database.read('overrides').where({ kid: KID })).toEqual([]);
  await first.database.close();
  bringBack();

  const { database, tenantOf } = await open(dataDir);
  expect(await database.read('overrides').where({ kid: KID })).toHaveLength(1);
  await reapplyErasures({ ...REAPPLY, database, dataDir, tenantOf, eraser: eraserOn(database, dataDir) });
  for (const table of ['overrides', 'held_erasures'])
    expect(await database.read(table).where({ kid: KID }), table).toEqual([]);
  await database.close();
});

const STAFF = { kid: KID, role: 'dpo', ref: 'd', label: 'Dora' } as const;

/** The data directory of a dpo who places and releases holds. */
async function dpo() {
  const { dataDir } = await initGpd();
  const opened = await open(dataDir);
  const { database, tenant } = opened;
  await record(database, 'a');
  const eraser = eraserOn(database, dataDir);
  const held = makeHeldErasures({ ...opened, eraser, clock: Date.now });
  const outside = { database, dataDir, logKey: REAPPLY.logKey };
  const context = { ...opened, clock: Date.now, held, outside };
  return {
    ...opened,
    dataDir,
    outside,
    eraser,
    place: () => placeHolds(context, STAFF, { durable: 'mine', scopes: ['decisions'], basis: 'case 12' }),
    release: () =>
      endHold(context, STAFF, { device: rightsRef(tenant.rightsKey, 'durable', 'mine'), scope: 'decisions' }),
  };
}

/** A start on what a restore left. @returns how many lines it applied */
async function startOn(dataDir: string) {
  const { database, tenantOf } = await open(dataDir);
  const applied = await reapplyErasures({
    ...REAPPLY,
    database,
    dataDir,
    tenantOf,
    eraser: eraserOn(database, dataDir),
  });
  const holds = await listHolds(database, KID, { limit: 10 });
  const decisions = await database.read('decisions').where({ kid: KID });
  await database.close();
  return { applied, holds, decisions };
}

it('places a hold again that the backup does not know, before the erasure that it kept something of', async () => {
  const { database, dataDir, place, eraser, tenant } = await dpo();
  const bringBack = await backUp(database, dataDir);
  await place();
  await eraser.erase(requestOf(tenant));
  await database.close();
  bringBack();

  const again = await startOn(dataDir);
  expect(again.applied).toBe(2);
  expect(again.decisions).toHaveLength(1);
  expect(again.holds).toMatchObject([
    { durable: 'mine', scope: 'decisions', requestedBy: 'subject', basis: expect.stringMatching(/lost/) },
  ]);
  expect(await startOn(dataDir)).toMatchObject({ applied: 0, holds: [{ durable: 'mine' }] });
});

it('releases a hold again that the backup still has, and leaves one alone that was placed and released', async () => {
  const { database, dataDir, place, release } = await dpo();
  await place();
  const bringBack = await backUp(database, dataDir);
  await release();
  await database.close();
  expect(await startOn(dataDir)).toMatchObject({ applied: 0, holds: [] });
  bringBack();
  expect(await startOn(dataDir)).toMatchObject({ applied: 1, holds: [] });
});

it('places no hold of a removed tenant for the next one under its kid', async () => {
  const { database, dataDir, place, release } = await dpo();
  await place();
  await release();
  await database.transaction(async (tx) => {
    await tx('audit_log').delete();
    await tx('tenants').update({ created_at: Date.now() + 1 });
  });
  await database.close();
  expect(await startOn(dataDir)).toMatchObject({ applied: 0, holds: [] });
});

/** Does the work while erasures.log cannot be written. */
async function withoutLog(dataDir: string, work: () => Promise<unknown>): Promise<void> {
  const [log, aside] = [join(dataDir, 'erasures.log'), join(dataDir, 'aside')];
  if (existsSync(log)) renameSync(log, aside);
  mkdirSync(log);
  await work();
  rmdirSync(log);
  if (existsSync(aside)) renameSync(aside, log);
}

// Guards against: the hold was committed, its line was lost, and a restore lost the hold or placed it again.
it('a hold whose line could not be written is in the log after the next sweep', async () => {
  const { database, dataDir, outside, place } = await dpo();
  const before = await backUp(database, dataDir);
  await withoutLog(dataDir, place);
  await recordEnded(outside, KID, Date.now());
  await database.close();
  before();
  expect(await startOn(dataDir)).toMatchObject({ applied: 1, holds: [{ durable: 'mine' }] });

  const second = await dpo();
  await second.place();
  const held = await backUp(second.database, second.dataDir);
  await withoutLog(second.dataDir, second.release);
  await recordEnded(second.outside, KID, Date.now());
  await second.database.close();
  held();
  expect(await startOn(second.dataDir)).toMatchObject({ applied: 1, holds: [] });
});
