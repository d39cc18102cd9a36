import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { rightsRef } from '../../../src/audit/audit-store.ts';
import { createConsent } from '../../../src/consent/create-consent-service.ts';
import { placeHoldOn, releaseHoldOn } from '../../../src/console/holds-service.ts';
import type { Database } from '../../../src/db/engine.ts';
import { recordEnded } from '../../../src/rights/erase/ended-store.ts';
import { erasuresFile } from '../../../src/rights/erase/erasure-log-service.ts';
import { NOTHING } from '../../../src/rights/erase/erasure-service.ts';
import { listHolds } from '../../../src/rights/erase/hold-store.ts';
import { reapplyErasures } from '../../../src/rights/erase/reapply-service.ts';
import type { ErasureReceipt } from '../../../src/schema/rights.ts';
import { principalRef, type Tenant } from '../../../src/tenants/tenant.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { noteStatements } from '../../support/database.ts';
import { initGpd } from '../../support/server.ts';
import { eraserOn, open, REAPPLY, record, requestOf, tombstonesOf } from '../support/eraser.ts';

/** The service of erasures, without a server around it: in one transaction, in steps, and again after a restore. */

const PATIENT = { largeAbove: 5, patienceMs: Number.POSITIVE_INFINITY };

async function setUp(ids: readonly string[] = ['a']) {
  const { dataDir } = await initGpd();
  const opened = await open(dataDir);
  for (const id of ids) await record(opened.database, id);
  return { ...opened, dataDir, eraser: eraserOn(opened.database, dataDir) };
}

const rowsLeft = (database: Database): Promise<string[]> =>
  database.read('decisions').where({ kid: KID }).pluck('request_id');

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

/** A start on what a restore left. @returns how many lines it applied, and what there is then */
async function startOn(dataDir: string) {
  const opened = await open(dataDir);
  const { database } = opened;
  const eraser = eraserOn(database, dataDir, Date.now, PATIENT);
  const applied = await reapplyErasures({ ...REAPPLY, ...opened, dataDir, eraser });
  await eraser.resume();
  const holds = await listHolds(database, KID, { limit: 10 });
  const counts: Record<string, number> = {};
  for (const table of ['decisions', 'sightings', 'overrides', 'links'])
    counts[table] = (await database.read(table).where({ kid: KID })).length;
  const keys = await database.read('consent_principals').where({ kid: KID }).pluck('wrapped_key');
  const pending = await database.read('erasures').where({ files_clean_at: null });
  expect(pending).toEqual([]);
  await database.close();
  return { applied, holds, keys, ...counts };
}

/** Does the work while erasures.log cannot be written: a directory at its path makes an append fail as a full disk does. */
async function withoutLog<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  const [log, aside] = [erasuresFile(dataDir), join(dataDir, 'aside')];
  if (existsSync(log)) renameSync(log, aside);
  mkdirSync(log);
  const done = await work();
  rmdirSync(log);
  if (existsSync(aside)) renameSync(aside, log);
  return done;
}

describe('an erasure', () => {
  it('never reads beside its own transaction: on PostgreSQL both wait for a connection of one pool', async () => {
    const { dataDir, database, tenant } = await setUp();
    let inside = false;
    const watched: Database = {
      ...database,
      get read() {
        if (inside) throw new Error('a second connection was wanted');
        return database.read;
      },
      transaction: (work) =>
        database.transaction(async (tx) => {
          inside = true;
          return work(tx).finally(() => {
            inside = false;
          });
        }),
    };
    expect(await eraserOn(watched, dataDir).erase(requestOf(tenant))).toMatchObject({ incomplete: false });
    await database.close();
  });

  it('completes on SQLite a receipt that came from PostgreSQL and waits for a scrub there', async () => {
    const { database, tenant, eraser } = await setUp();
    const { receiptId, scopes } = await eraser.erase(requestOf(tenant));
    expect(scopes.at(-1)).toEqual({ scope: 'storage', action: 'erased', count: 1 });
    const moved = scopes.map((one) => (one.scope === 'storage' ? { ...one, action: 'pending' } : one));
    const row = { files_clean_at: null, scopes: JSON.stringify(moved) };
    await database.transaction((tx) => tx('erasures').where({ receipt_id: receiptId }).update(row));
    expect(await eraser.status(receiptId)).toMatchObject({ incomplete: true });
    expect((await eraser.resume()).receipts).toMatchObject([{ receiptId, incomplete: false, scopes }]);
    await database.close();
  });

  // Guards against: of 8,000,000 visitorIds all were read to delete one, and every write waited for a second.
  it('reads no table of a tenant whole', async () => {
    const { dataDir, database, tenant } = await setUp();
    const ran: { readonly sql: string; readonly bindings: readonly unknown[] }[] = [];
    const watched: Database = {
      ...database,
      transaction: (work) =>
        database.transaction((tx) => {
          noteStatements(tx, (query) => ran.push(query));
          return work(tx);
        }),
    };
    const target = { ...NOTHING, durables: ['mine'], requests: ['req_a'] };
    await eraserOn(watched, dataDir).erase(requestOf(tenant, { target }));
    const large = / (decisions|sightings|visitor_index|webhook_outbox|signal_summaries|links) /;
    const plans: string[] = [];
    for (const { sql, bindings } of ran.filter((query) => /^(?:select|delete|update)/i.test(query.sql))) {
      const plan = await database.read.raw(`EXPLAIN QUERY PLAN ${sql}`, [...bindings] as never);
      plans.push(
        ...(plan as { detail: string }[]).map(({ detail }) => detail).filter((step) => large.test(step)),
      );
    }
    expect(plans.length).toBeGreaterThan(10);
    expect(plans.filter((step) => step.startsWith('SCAN') || step.endsWith('(kid=?)'))).toEqual([]);
    await database.close();
  });

  it('whose tombstone cannot be written leaves a receipt to be finished, and not the answer that nothing was done', async () => {
    const { dataDir, database, tenant, eraser } = await setUp();
    const { receiptId, incomplete } = await withoutLog(dataDir, () => eraser.erase(requestOf(tenant)));
    expect([incomplete, eraser.faults.length]).toEqual([true, 1]);
    expect(await rowsLeft(database)).toEqual([]);
    expect((await eraser.resume()).receipts).toMatchObject([{ receiptId, incomplete: false }]);
    expect(await tombstonesOf(database, dataDir)).toMatchObject([{ receiptId }]);
    await database.close();
  });
});

describe('an erasure of many visits', () => {
  const IDS = Array.from({ length: 12 }, (_, i) => `many-${i}`);
  const LARGE = { largeAbove: 5, patienceMs: 0 };
  const actionsOf = ({ scopes }: ErasureReceipt) =>
    Object.fromEntries(scopes.map(({ scope, action, count }) => [scope, `${action} ${count}`]));

  /** A database in which the first step waits until it is let go. */
  function waitingAtSteps(database: Database) {
    let letGo = (): void => {};
    let first: Promise<void> | null = new Promise((resolve) => {
      letGo = resolve;
    });
    const transaction: Database['transaction'] = async (work) => {
      const isStep = (await database.read('erasures').where({ state: 'logged' })).length > 0;
      const wait = isStep ? first : null;
      if (isStep) first = null;
      await wait;
      return database.transaction(work);
    };
    return { ...database, transaction, letGo };
  }

  it('tells the webhooks of each deleted decision once', async () => {
    const { dataDir, database, tenant } = await setUp(IDS);
    const listening: Tenant = { ...tenant, webhooksFor: () => ['w'] };
    const eraser = eraserOn(database, dataDir, Date.now, { ...PATIENT, tenantOf: () => listening });
    await eraser.erase(requestOf(listening));
    const rows = await database.read('webhook_outbox').where({ event: 'decision.erased' });
    expect(rows).toHaveLength(IDS.length);
    await database.close();
  });

  it('is pending when it is answered, and the steps complete it', async () => {
    const { dataDir, database, tenant } = await setUp(IDS);
    const heldSteps = waitingAtSteps(database);
    const eraser = eraserOn(heldSteps, dataDir, Date.now, LARGE);
    const receipt = await eraser.erase(requestOf(tenant));
    const { receiptId } = receipt;
    expect(receipt).toMatchObject({ incomplete: true });
    expect(actionsOf(receipt)).toMatchObject({ decisions: 'pending 0', sightings: 'pending 1' });
    expect(await tombstonesOf(database, dataDir)).toMatchObject([{ receiptId }]);
    expect(await rowsLeft(database)).toHaveLength(12);
    // Beside its steps the same device comes back, and the sweep leaves to the process what it has in hand.
    await record(database, 'new');
    expect(await eraser.resume()).toEqual({ receipts: [], failures: [] });
    heldSteps.letGo();
    await vi.waitFor(
      async () => expect(await eraser.status(receiptId)).toMatchObject({ incomplete: false }),
      { interval: 10, timeout: 10_000 },
    );
    const done = (await eraser.status(receiptId)) as ErasureReceipt;
    expect(actionsOf(done)).toMatchObject({ decisions: 'erased 12', links: 'none 0' });
    expect(await rowsLeft(database)).toEqual(['req_new']);
    const bytes = readFileSync(join(dataDir, 'gpd.db'));
    expect(IDS.filter((id) => bytes.includes(`req_${id}`))).toEqual([]);
    expect(eraser.faults).toEqual([]);
    await database.close();
  });

  it('is complete with its answer where the steps take no longer than an answer may', async () => {
    const { dataDir, database, tenant } = await setUp(IDS);
    const receipt = await eraserOn(database, dataDir, Date.now, PATIENT).erase(requestOf(tenant));
    expect(receipt).toMatchObject({ incomplete: false });
    expect(actionsOf(receipt)).toMatchObject({ decisions: 'erased 12', 'visitor-index': 'erased 1' });
    expect(await database.read('erasing')).toEqual([]);
    await database.close();
  });

  it('goes on after a stop in the middle, and a restore applies it again from an older copy or one that has its receipt', async () => {
    const { dataDir, database, tenant } = await setUp(IDS);
    const bringBackOlder = await backUp(database, dataDir);
    const stopped = eraserOn(database, dataDir, Date.now, LARGE);
    const receipt = await withoutLog(dataDir, () => stopped.erase(requestOf(tenant)));
    expect([receipt.incomplete, stopped.faults.length]).toEqual([true, 1]);
    await stopped.stop();
    // It has stopped: the tombstone is written, and no step taken.
    expect(await stopped.resume()).toMatchObject({ receipts: [{ incomplete: true }], failures: [] });
    expect(await rowsLeft(database)).toHaveLength(12);
    const bringBackBegun = await backUp(database, dataDir);
    await database.close();
    for (const [bringBack, applied] of [
      [bringBackOlder, 1],
      [bringBackBegun, 0],
    ] as const) {
      bringBack();
      expect(await startOn(dataDir)).toMatchObject({ applied, decisions: 0, sightings: 0 });
      expect(readFileSync(join(dataDir, 'gpd.db')).includes('req_many-3')).toBe(false);
    }
  });
});

describe('a restore', () => {
  const STAFF = { kid: KID, role: 'dpo', ref: 'd', label: 'Dora' } as const;

  /** The data directory of a dpo who places and releases holds. */
  async function dpo() {
    const place = await setUp();
    const { database, dataDir, tenant } = place;
    const logAccess = { database, dataDir, logKey: REAPPLY.logKey };
    const context = { ...place, clock: Date.now, logAccess };
    const device = rightsRef(tenant.rightsKey, 'durable', 'mine');
    return {
      ...place,
      logAccess,
      place: () => placeHoldOn(context, STAFF, { durable: 'mine', basis: 'case 12' }),
      release: () => releaseHoldOn(context, STAFF, device),
    };
  }

  it('applies again what was erased of a principal, once', async () => {
    const { dataDir, database, tenant, eraser } = await setUp(['a', 'b']);
    const principal = principalRef(tenant.principalKey, 'paul');
    const body = { principalId: 'paul', purposes: ['device-identification'] };
    const grant = { action: 'grant', body, source: 'backend', caller: 'k', idempotencyKey: null } as const;
    await createConsent({ database, clock: Date.now, random: randomBytes }).service.write(tenant, grant);
    const link = { kid: KID, request_id: 'req_a', principal, linked_at: 1 };
    await database.transaction((tx) => tx('links').insert(link));
    const bringBack = await backUp(database, dataDir);
    const ids = { requests: ['req_a'], principal: { ref: principal, id: 'paul' }, linksOf: principal };
    await eraser.erase(requestOf(tenant, { target: { ...NOTHING, ...ids } }));
    await database.close();
    bringBack();
    const rowsGone = { links: 0, decisions: 1, keys: [null] };
    expect(await startOn(dataDir)).toMatchObject({ ...rowsGone, applied: 1 });
    expect(await startOn(dataDir)).toMatchObject({ ...rowsGone, applied: 0 });
  });

  it('applies the erasure that kept nothing, though a later one of the same device kept something', async () => {
    const { dataDir, database, tenant, eraser } = await setUp();
    const override = { kid: KID, durable: 'mine', created_at: 1, request_id: null };
    await database.transaction((tx) => tx('overrides').insert(override));
    const bringBack = await backUp(database, dataDir);
    await eraser.erase(requestOf(tenant));
    await record(database, 'b');
    await eraser.erase(requestOf(tenant, { keep: { openContests: true, override: true } }));
    await database.close();
    bringBack();
    const rowsGone = { decisions: 0, sightings: 0, overrides: 0 };
    expect(await startOn(dataDir)).toMatchObject({ applied: 2, ...rowsGone });
  });

  it('places a hold again that the backup does not know, before the erasure that it kept something of', async () => {
    const { database, dataDir, place, eraser, tenant } = await dpo();
    const bringBack = await backUp(database, dataDir);
    await place();
    await eraser.erase(requestOf(tenant));
    await database.close();
    bringBack();
    const holds = [{ durable: 'mine', basis: expect.stringMatching(/lost/) }];
    expect(await startOn(dataDir)).toMatchObject({ applied: 2, decisions: 1, holds });
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

  // Guards against: a sweep read the 10,000 newest changes of holds, and lost the older ones.
  it('knows a hold that more than ten thousand later rows of the audit log follow', async () => {
    const { database, dataDir, logAccess, place } = await dpo();
    const bringBack = await backUp(database, dataDir);
    await withoutLog(dataDir, place);
    const row = "'dpo', 'a', 'hold.placed', 'other', '{\"found\":false}', 's', 'c'";
    await database.transaction((tx) =>
      tx.raw(`INSERT INTO audit_log (kid, at, role, actor, action, object, detail, salt, commitment)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
        SELECT '${KID}', ${Date.now()}, ${row} FROM n`),
    );
    await recordEnded(logAccess, Date.now());
    await database.close();
    bringBack();
    expect(await startOn(dataDir)).toMatchObject({ applied: 1, holds: [{ durable: 'mine' }] });
  });

  // Guards against: the hold was committed, its line was lost, and a restore lost the hold or placed it again.
  it.each(['placed', 'released'])(
    'knows a hold that was %s while its line could not be written, after a sweep',
    async (act) => {
      const { database, dataDir, logAccess, place, release } = await dpo();
      if (act === 'released') await place();
      const bringBack = await backUp(database, dataDir);
      await withoutLog(dataDir, async () => (act === 'placed' ? place() : release()));
      await recordEnded(logAccess, Date.now());
      await database.close();
      bringBack();
      const holds = act === 'placed' ? [{ durable: 'mine' }] : [];
      expect(await startOn(dataDir)).toMatchObject({ applied: 1, holds });
    },
  );
});
