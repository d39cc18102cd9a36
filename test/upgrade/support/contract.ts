import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect } from 'vitest';
import { startApp } from '../../../src/app.ts';
import { type Config, loadConfig } from '../../../src/config.ts';
import { addStateMacs, stateMacs } from '../../../src/consent/state-mac-service.ts';
import { countInvalid } from '../../../src/consent/state-mac-store.ts';
import { savePurposes, type TermsOf } from '../../../src/consent/terms-store.ts';
import { verifyLog } from '../../../src/consent/verify-service.ts';
import { type Database, openDatabase } from '../../../src/db/db.ts';
import { gatherDatabase, tryMasterKey } from '../../../src/ops/doctor/gather-database.ts';
import { gatherMasterKey } from '../../../src/ops/doctor/gather-files.ts';
import type { RunningApp } from '../../../src/ops/running.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { firstPurpose } from '../../../src/tenants/tenant.ts';
import { operatorAt } from '../../support/act.ts';
import { tempDir } from '../../support/command.ts';
import { fill } from './fill.ts';
import type { Row, Rung } from './rung.ts';

/** What an upgrade has to keep, on either database. */

export interface Place {
  readonly config: Config;
  readonly location: string;
}

/** A data directory with the master key of a release, and the database that it left. */
export async function makePlace(rung: Rung, url?: string): Promise<Place> {
  const dataDir = join(tempDir('upgrade'), 'gpd-data');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, 'master.key'), Buffer.from(rung.masterKey, 'base64'), { mode: 0o600 });
  const environment = {
    GPD_DATA_DIR: dataDir,
    GPD_PORT: '0',
    GPD_DISK_RESERVE: '1',
    ...(url === undefined ? {} : { GPD_DATABASE_URL: url }),
  };
  const location = url ?? join(dataDir, 'gpd.db');
  const database = await openDatabase({ location, create: true });
  await fill(database, rung);
  await database.close();
  return { config: loadConfig({ environment }), location };
}

/** SQLite answers with 0 and 1 where PostgreSQL has a boolean. */
const plain = (_name: string, value: unknown): unknown =>
  typeof value === 'boolean' ? Number(value) : value;
const sorted = (rows: readonly Row[]): string[] => rows.map((row) => JSON.stringify(row, plain)).sort();

async function expectKept(database: Database, rung: Rung): Promise<void> {
  for (const [table, rows] of rung.rows) {
    const found = (await database.read(table).select(Object.keys(rows[0] ?? {}))) as Row[];
    expect({ table, rows: sorted(found) }).toEqual({ table, rows: sorted(rows) });
  }
}

async function expectWhole({ config }: Place, rung: Rung): Promise<void> {
  const store = await openStore(config);
  const { database } = store;
  try {
    // All rows of before the MACs have theirs, and nobody has to be served twice for it.
    expect(await addStateMacs(store)).toBe(rung.kids.length);
    expect(await addStateMacs(store)).toBe(0);
    const macs = await stateMacs(store);
    expect(
      await gatherDatabase(database, { now: rung.at, skewMs: 300_000 }, { tombstones: [], problem: null }),
    ).toMatchObject({
      integrity: [],
      foreignKeys: 0,
      pendingMigrations: [],
      unknownMigrations: [],
      missingTables: [],
    });
    expect(await tryMasterKey(database, gatherMasterKey(config).key)).toMatchObject({
      opens: true,
      unopened: [],
    });
    for (const kid of rung.kids) {
      expect(await verifyLog(database, kid)).toMatchObject({ ok: true, problems: [] });
      const terms = macs.get(kid) as TermsOf;
      expect(await countInvalid(database, terms)).toBe(0);
      // The log takes a further entry.
      expect(await savePurposes(database, terms, [firstPurpose()], operatorAt(rung.at))).toHaveLength(1);
      expect(await verifyLog(database, kid)).toMatchObject({ ok: true, problems: [] });
    }
  } finally {
    await database.close();
  }
}

/** To the present schema, by nothing but a start. */
export async function upgradeFrom(rung: Rung, url?: string): Promise<void> {
  const place = await makePlace(rung, url);
  const { database } = await openStore(place.config);
  await expectKept(database, rung);
  await database.close();
  await expectWhole(place, rung);
}

/** The server of this program, a minute after the release stopped. @returns it, and what it logged so far */
export async function serveAt(
  { config }: Place,
  rung: Rung,
): Promise<{ readonly app: RunningApp; readonly logs: () => string }> {
  const lines: string[] = [];
  const app = await startApp(config, {
    log: pino({}, { write: (line) => void lines.push(line) }),
    clock: () => rung.at + 60_000,
    onFatal: (error) => {
      throw error;
    },
  });
  return { app, logs: () => lines.join('') };
}
