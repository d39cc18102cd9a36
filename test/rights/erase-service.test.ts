import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ConsentTenant } from '../../src/app/consent-tenant.ts';
import { makeDirectory } from '../../src/app/directory.ts';
import { type EraseRequest, KEEP_NOTHING, makeEraseService } from '../../src/app/rights/erase.ts';
import { reapplyErasures } from '../../src/app/rights/reapply.ts';
import { openStore } from '../../src/app/store.ts';
import { loadConfig } from '../../src/config.ts';
import { NOTHING } from '../../src/rights/erase.ts';
import type { Database } from '../../src/storage/db.ts';
import { makeRecorder } from '../../src/storage/ingest-store.ts';
import { readSnapshot } from '../../src/storage/snapshot.ts';
import { tempDir } from '../support/command.ts';
import { makeEntry, NOW } from '../support/make.ts';
import { initGpd, KID } from '../support/server.ts';

/** The service of erasures on a database of its own, without a server around it. */

async function open(dataDir: string) {
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const { database, masterKey } = await openStore(config);
  const directory = makeDirectory(Date.now);
  directory.apply(await readSnapshot(database, -1), masterKey);
  const tenantOf = (kid: string): ConsentTenant | undefined => directory.consentTenant(kid);
  const tenant = tenantOf(KID);
  if (!tenant) throw new Error('the tenant is not there');
  return { database, tenant, tenantOf };
}

function requestOf(tenant: ConsentTenant, over: Partial<EraseRequest> = {}): EraseRequest {
  return {
    tenant,
    target: { ...NOTHING, durables: ['mine'] },
    requestedBy: 'subject',
    actor: { role: 'subject', ref: 'r' },
    keep: KEEP_NOTHING,
    ...over,
  };
}

const record = (database: Database, id: string): Promise<unknown> =>
  makeRecorder(database).record(makeEntry({ kid: KID, id, durable: 'mine' }));

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
  const eraser = makeEraseService({ database: watched, dataDir, clock: () => NOW });
  expect(await eraser.erase(requestOf(tenant))).toMatchObject({ incomplete: false });
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

  const eraser = makeEraseService({ database: first.database, dataDir, clock: Date.now });
  await eraser.erase(requestOf(first.tenant));
  await record(first.database, 'b');
  await eraser.erase(requestOf(first.tenant, { keep: { openContests: true, override: true } }));
  await first.database.close();
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dataDir, `gpd.db${suffix}`), { force: true });
  cpSync(old, join(dataDir, 'gpd.db'));

  const { database, tenantOf } = await open(dataDir);
  const again = makeEraseService({ database, dataDir, clock: Date.now });
  expect(await reapplyErasures({ database, dataDir, tenantOf, eraser: again })).toBe(2);
  for (const table of ['decisions', 'sightings', 'overrides'])
    expect(await database.read(table).where({ kid: KID }), table).toEqual([]);
  await database.close();
});
