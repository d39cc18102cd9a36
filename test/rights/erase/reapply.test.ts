import { cpSync, existsSync, mkdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { rightsRef } from '../../../src/audit/audit.ts';
import { placeHoldOn, releaseHoldOn } from '../../../src/console/holds-service.ts';
import type { Database } from '../../../src/db/engine.ts';
import { recordEnded } from '../../../src/rights/erase/ended.ts';
import { NOTHING } from '../../../src/rights/erase/erasure.ts';
import { listHolds } from '../../../src/rights/erase/hold.ts';
import { reapplyErasures } from '../../../src/rights/erase/reapply.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { initGpd } from '../../support/server.ts';
import { eraserOn, open, REAPPLY, record, requestOf } from '../support/eraser.ts';

/** Every table that names a person finds again the rows that an older backup brings back. */

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

const STAFF = { kid: KID, role: 'dpo', ref: 'd', label: 'Dora' } as const;

/** The data directory of a dpo who places and releases holds. */
async function dpo() {
  const { dataDir } = await initGpd();
  const opened = await open(dataDir);
  const { database, tenant } = opened;
  await record(database, 'a');
  const eraser = eraserOn(database, dataDir);
  const logAccess = { database, dataDir, logKey: REAPPLY.logKey };
  const context = { ...opened, clock: Date.now, eraser, logAccess };
  return {
    ...opened,
    dataDir,
    logAccess,
    eraser,
    place: () => placeHoldOn(context, STAFF, { durable: 'mine', basis: 'case 12' }),
    release: (again = false) =>
      releaseHoldOn(context, STAFF, rightsRef(tenant.rightsKey, 'durable', 'mine'), again),
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
  expect(again.holds).toMatchObject([{ durable: 'mine', basis: expect.stringMatching(/lost/) }]);
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

it('a release runs again what it kept of a principal’s erasure: the link of the held device', async () => {
  const { database, place, release, eraser, tenant } = await dpo();
  const link = { kid: KID, request_id: 'req_a', principal: 'p', linked_at: 1 };
  await database.transaction((tx) => tx('links').insert(link));
  await place();
  const target = { ...NOTHING, principal: { ref: 'p', id: 'paul' }, linksOf: 'p' };
  const receipt = await eraser.erase(requestOf(tenant, { target }));
  expect(receipt.scopes.find(({ scope }) => scope === 'links')).toMatchObject({
    action: 'retained',
    count: 1,
  });
  const later = { ...link, request_id: 'req_later', linked_at: Date.parse(receipt.erasedAt) + 1 };
  await database.transaction((tx) => tx('links').insert(later));
  const released = await release(true);
  expect(released).toMatchObject({ limited: [receipt.receiptId], newReceipts: [{ requestedBy: 'subject' }] });
  // Nobody asked to erase what was linked afterwards.
  expect(await database.read('links')).toMatchObject([later]);
  expect(await database.read('decisions')).toHaveLength(1);
  await database.close();
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
  const { database, dataDir, logAccess, place } = await dpo();
  const before = await backUp(database, dataDir);
  await withoutLog(dataDir, place);
  await recordEnded(logAccess, Date.now());
  await database.close();
  before();
  expect(await startOn(dataDir)).toMatchObject({ applied: 1, holds: [{ durable: 'mine' }] });

  const second = await dpo();
  await second.place();
  const restore = await backUp(second.database, second.dataDir);
  await withoutLog(second.dataDir, () => second.release());
  await recordEnded(second.logAccess, Date.now());
  await second.database.close();
  restore();
  expect(await startOn(second.dataDir)).toMatchObject({ applied: 1, holds: [] });
});
