import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { NOTHING } from '../../../src/rights/erase/erasure.ts';
import { erasuresFile } from '../../../src/rights/erase/erasure-log.ts';
import { reapplyErasures } from '../../../src/rights/erase/reapply.ts';
import { tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { NOW } from '../../support/make.ts';
import { initGpd } from '../../support/server.ts';
import { eraserOn, open, REAPPLY, record, requestOf, tombstonesOf } from '../support/eraser.ts';

/** The service of erasures, without a server around it. */

it('never reads beside its own transaction: on PostgreSQL both wait for a connection of one pool', async () => {
  const { dataDir } = await initGpd();
  const { database, tenant } = await open(dataDir);
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
  await record(database, 'a');
  const eraser = eraserOn(watched, dataDir, () => NOW);
  expect(await eraser.erase(requestOf(tenant))).toMatchObject({ incomplete: false });
  await database.close();
});

it('completes on SQLite a receipt that came from PostgreSQL and waits for a scrub there', async () => {
  const { dataDir } = await initGpd();
  const { database, tenant } = await open(dataDir);
  await record(database, 'a');
  const eraser = eraserOn(database, dataDir, () => NOW);
  const { receiptId, scopes } = await eraser.erase(requestOf(tenant));
  expect(scopes.at(-1)).toEqual({ scope: 'storage', action: 'erased', count: 1 });
  const moved = scopes.map((one) => (one.scope === 'storage' ? { ...one, action: 'pending' } : one));
  const row = { step: 'scrub', scopes: JSON.stringify(moved) };
  await database.transaction((tx) => tx('erasures').where({ receipt_id: receiptId }).update(row));
  expect(await eraser.status(receiptId)).toMatchObject({ incomplete: true });
  expect((await eraser.resume()).receipts).toMatchObject([{ receiptId, incomplete: false, scopes }]);
  await database.close();
});

// Guards against: of 8,000,000 visitorIds all were read to delete one, and every write waited for a second.
it('reads no table of a tenant whole', async () => {
  const { dataDir } = await initGpd();
  const { database, tenant } = await open(dataDir);
  await record(database, 'a');
  const ran: { readonly sql: string; readonly bindings: readonly unknown[] }[] = [];
  const watched: Database = {
    ...database,
    transaction: (work) =>
      database.transaction((tx) => {
        tx.on('query', (query: (typeof ran)[number]) => ran.push(query));
        return work(tx);
      }),
  };
  const eraser = eraserOn(watched, dataDir, () => NOW);
  await eraser.erase(requestOf(tenant, { target: { ...NOTHING, durables: ['mine'], requests: ['req_a'] } }));
  const large = ['decisions', 'sightings', 'visitor_index', 'webhook_outbox', 'signal_summaries', 'links'];
  const plans: string[] = [];
  for (const { sql, bindings } of ran) {
    if (!/^(?:select|delete|update)/i.test(sql)) continue;
    const plan = (await database.read.raw(`EXPLAIN QUERY PLAN ${sql}`, [...bindings] as never)) as {
      detail: string;
    }[];
    plans.push(
      ...plan.map(({ detail }) => detail).filter((step) => large.some((name) => step.includes(` ${name} `))),
    );
  }
  expect(plans.length).toBeGreaterThan(10);
  expect(plans.filter((step) => step.startsWith('SCAN') || step.endsWith('(kid=?)'))).toEqual([]);
  await database.close();
});

it('a restore applies the erasure that kept nothing, though a later one of the same device kept something', async () => {
  const { dataDir } = await initGpd();
  const first = await open(dataDir);
  await record(first.database, 'a');
  const override = { kid: KID, durable: 'mine', created_at: NOW, request_id: null };
  await first.database.transaction((tx) => tx('overrides').insert(override));
  await first.database.truncateLog();
  const old = join(tempDir('old'), 'gpd.db');
  cpSync(join(dataDir, 'gpd.db'), old);

  const eraser = eraserOn(first.database, dataDir);
  await eraser.erase(requestOf(first.tenant));
  await record(first.database, 'b');
  await eraser.erase(requestOf(first.tenant, { keep: { openContests: true, override: true } }));
  await first.database.close();
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dataDir, `gpd.db${suffix}`), { force: true });
  cpSync(old, join(dataDir, 'gpd.db'));

  const { database, tenantOf } = await open(dataDir);
  const again = eraserOn(database, dataDir);
  expect(await reapplyErasures({ ...REAPPLY, database, dataDir, tenantOf, eraser: again })).toBe(2);
  for (const table of ['decisions', 'sightings', 'overrides'])
    expect(await database.read(table).where({ kid: KID }), table).toEqual([]);
  await database.close();
});

it('a tombstone that cannot be written leaves a receipt to be finished, and not the answer that nothing was done', async () => {
  const { dataDir } = await initGpd();
  const { database, tenant } = await open(dataDir);
  await record(database, 'a');
  // A directory at the path of the file makes the append fail as a full disk does.
  mkdirSync(erasuresFile(dataDir));
  const eraser = eraserOn(database, dataDir);
  const receipt = await eraser.erase(requestOf(tenant));
  expect(receipt).toMatchObject({ incomplete: true });
  expect(eraser.faults).toHaveLength(1);
  expect(await database.read('decisions').where({ kid: KID })).toEqual([]);
  rmSync(erasuresFile(dataDir), { recursive: true });
  expect((await eraser.resume()).receipts).toMatchObject([
    { receiptId: receipt.receiptId, incomplete: false },
  ]);
  expect(await tombstonesOf(database, dataDir)).toMatchObject([{ receiptId: receipt.receiptId }]);
  await database.close();
});
