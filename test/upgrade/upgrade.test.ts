import { beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/db/db.ts';
import { migrate } from '../../src/db/migrate.ts';
import { expectCore, post } from '../http/support/expect.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { desktopChrome } from '../support/samples.ts';
import { makeBundle } from '../support/seal.ts';
import { KID, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { makePlace, upgradeFrom } from './support/contract.ts';
import { makeSource, type Source } from './support/source.ts';
import { fill, migrateTo, migrationNames, shapeOf } from './support/upgrade.ts';

/** From every earlier schema, with data in it. */

const SLOW = 120_000;
const names = await migrationNames();
let source: Source;
beforeAll(async () => {
  source = await makeSource();
}, SLOW);

it('has rows to lose in most tables', () => {
  const filled = [...source.rows].filter(([, rows]) => rows.length > 0).map(([table]) => table);
  expect(filled.length).toBeGreaterThanOrEqual(25);
  for (const table of ['decisions', 'contests', 'overrides', 'consent_state', 'verdict_seals', 'erasures']) {
    expect(filled).toContain(table);
  }
});

describe('an upgrade on SQLite', () => {
  it.each(names.map((name, i) => [name, i + 1] as const))(
    'from %s keeps every row',
    async (_name, count) => {
      await upgradeFrom(names.slice(0, count), source, makePlace(source));
    },
    SLOW,
  );

  it('ends in the shape of a new database, wherever it began', async () => {
    const fresh = await openDatabase({ location: makePlace(source).location, create: true });
    await migrate(fresh);
    const expected = await shapeOf(fresh);
    await fresh.close();
    for (const count of [1, 5, 13, names.length]) {
      const database = await openDatabase({ location: makePlace(source).location, create: true });
      await migrateTo(database, names.slice(0, count));
      await fill(database, source);
      await migrate(database);
      expect(await shapeOf(database)).toEqual(expected);
      await database.close();
    }
  });

  it(
    'is done by the start of the server: a device is known, and its tenant has a log',
    async () => {
      const { config, location } = makePlace(source);
      const database = await openDatabase({ location, create: true });
      await migrateTo(database, names.slice(0, 6));
      await fill(database, source);
      await database.close();
      const gpd = await startGpd({ dataDir: config.data_dir });
      const { publicKey } = (await (await fetch(`${gpd.url}/_fp/pubkey?kid=${KID}`)).json()) as {
        publicKey: string;
      };
      const target = { kid: KID, publicKey: Buffer.from(publicKey, 'base64') };
      const bundle = makeBundle(target, { signals: desktopChrome(source.known.device) });
      const answer = expectCore(await post(gpd.url, bundle), 'ok');
      expect(answer).toMatchObject({ visitorId: source.known.visitorId, confidence: 0.99 });
      await gpd.json(['consent', 'grant', KID, 'carl', 'device-identification']);
      expect(await gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
      await gpd.stop();
    },
    SLOW,
  );

  it('never begins a log anew that was lost', async () => {
    const { config, location } = makePlace(source);
    const database = await openDatabase({ location, create: true });
    await migrate(database);
    await fill(database, source);
    await database.transaction((tx) => tx('ledger_heads').where({ kid: KID }).delete());
    await database.close();
    // That tenant is not served, and the others are.
    const gpd = await startGpd({ dataDir: config.data_dir });
    const statusOf = async (kid: string) => (await fetch(`${gpd.url}/_fp/pubkey?kid=${kid}`)).status;
    expect([await statusOf(KID), await statusOf('other')]).toEqual([404, 200]);
    await gpd.stop();
    expect(gpd.logs()).toMatch(/"event":"tenant-damaged","tenant":"acme"/);
    const after = await openDatabase({ location });
    expect(await after.read('ledger_heads').pluck('kid')).toEqual(['other']);
    await after.close();
  });
});

describeWithTool('an upgrade on PostgreSQL', await missingPostgres(), () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    return () => server.stop();
  }, SLOW);

  it.each(names.map((name, i) => [name, i + 1] as const))(
    'from %s keeps every row',
    async (_name, count) => {
      await upgradeFrom(names.slice(0, count), source, makePlace(source, await server.freshUrl()));
    },
    SLOW,
  );
});
