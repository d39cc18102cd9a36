import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { makeDirectory } from '../../../src/app/directory.ts';
import { readSnapshot } from '../../../src/app/snapshot-store.ts';
import { type Config, loadConfig } from '../../../src/config.ts';
import { savePurposes } from '../../../src/consent/terms-store.ts';
import { type Database, openDatabase } from '../../../src/db/db.ts';
import { verifyLog } from '../../../src/log/verify-service.ts';
import { gatherDatabase, tryMasterKey } from '../../../src/ops/doctor/gather-database.ts';
import { gatherMasterKey } from '../../../src/ops/doctor/gather-files.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { firstPurpose } from '../../../src/tenants/tenant.ts';
import { operatorAt } from '../../support/act.ts';
import { tempDir } from '../../support/command.ts';
import type { Row, Source } from './source.ts';
import { type Filled, fill, migrateTo } from './upgrade.ts';

/** What an upgrade has to keep, on either database. */

export interface Place {
  readonly config: Config;
  readonly location: string;
}

/** A data directory with the master key of the rows. */
export function makePlace(source: Source, url?: string): Place {
  const dataDir = join(tempDir('upgrade'), 'gpd-data');
  mkdirSync(dataDir, { mode: 0o700 });
  copyFileSync(join(source.dataDir, 'master.key'), join(dataDir, 'master.key'));
  const environment = { GPD_DATA_DIR: dataDir, ...(url === undefined ? {} : { GPD_DATABASE_URL: url }) };
  return { config: loadConfig({ environment }), location: url ?? join(dataDir, 'gpd.db') };
}

/** SQLite answers with 0 and 1 where PostgreSQL has a boolean. */
const plain = (_name: string, value: unknown): unknown =>
  typeof value === 'boolean' ? Number(value) : value;
const sorted = (rows: readonly Row[]): string[] => rows.map((row) => JSON.stringify(row, plain)).sort();

async function rowsOf(database: Database, table: string, like: readonly Row[]): Promise<string[]> {
  const columns = Object.keys(like[0] ?? {});
  return columns.length === 0 ? [] : sorted((await database.read(table).select(columns)) as Row[]);
}

/** Tables whose rows an upgrade itself adds to or bumps. */
const MOVING = new Set(['revisions', 'meta', 'erased_verdicts']);
const BEFORE_THE_LEDGER = new Set(['tenants', 'tenant_secrets', 'purposes']);

async function expectKept(database: Database, { inserted, erased }: Filled, source: Source): Promise<void> {
  const hadLedger = inserted.has('ledger_heads');
  for (const [table, rows] of inserted) {
    if (MOVING.has(table) || (!hadLedger && BEFORE_THE_LEDGER.has(table))) continue;
    const expected = table === 'decisions' && erased > 0 ? null : sorted(rows);
    const found = await rowsOf(database, table, rows);
    if (expected === null) expect(found).toHaveLength(rows.length - erased);
    else expect({ table, rows: found }).toEqual({ table, rows: expected });
  }
  if (erased > 0) {
    expect(await database.read('erased_verdicts').orderBy('position').pluck('position')).toEqual([0, 2]);
  }
  expect(source.kids).toHaveLength(2);
}

async function expectWhole(config: Config, source: Source): Promise<void> {
  const { database, masterKey } = await openStore(config);
  try {
    const facts = await gatherDatabase(database, Date.now(), []);
    expect(facts).toMatchObject({
      integrity: [],
      foreignKeys: 0,
      pendingMigrations: [],
      unknownMigrations: [],
      missingTables: [],
    });
    const { key, facts: keyFacts } = gatherMasterKey(config);
    expect(await tryMasterKey(database, key, keyFacts)).toMatchObject({ opens: true, unopened: [] });
    const directory = makeDirectory(Date.now);
    directory.apply(await readSnapshot(database, -1), masterKey);
    for (const kid of source.kids) {
      expect(directory.tenant(kid)).toBeDefined();
      expect(directory.consentTenant(kid)?.purposes.length).toBeGreaterThan(0);
      expect(await verifyLog(database, kid)).toMatchObject({ ok: true, problems: [] });
      // The log takes a further entry.
      expect(await savePurposes(database, kid, [firstPurpose()], operatorAt(Date.now()))).toHaveLength(1);
      expect(await verifyLog(database, kid)).toMatchObject({ ok: true, problems: [] });
    }
  } finally {
    await database.close();
  }
}

/** From the schema of these migrations to the present one, by nothing but a start. */
export async function upgradeFrom(names: readonly string[], source: Source, place: Place): Promise<void> {
  const { config, location } = place;
  const old = await openDatabase({ location, create: true });
  await migrateTo(old, names);
  const filled = await fill(old, source);
  await old.close();
  await (await openStore(config)).database.close();
  const now = await openDatabase({ location });
  await expectKept(now, filled, source);
  await now.close();
  await expectWhole(config, source);
}
