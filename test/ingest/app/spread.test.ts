import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { purgeNetworks } from '../../../src/ingest/devices-store.ts';
import { isShared, type KnownDevice } from '../../../src/ingest/verdict/identity.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { createSqlite, type SqliteFile } from '../../agents/support/sqlite.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createLookup, createRecorder } from '../../support/recorder.ts';

/** The real recorder and the real lookup on a real SQLite file: networks a day, pairs a week. */

const TODAY = Math.floor(NOW / DAY);
const LIMITS = { max_networks_per_day: 20, min_identity_bits: 12, collision_risk: 0.01 };
type Spread = KnownDevice['spread'];

let file: SqliteFile;
beforeAll(async () => {
  file = await createSqlite();
});
afterAll(() => file.close());

interface Seen {
  readonly kid: string;
  readonly durable: string;
  readonly network: string;
  readonly day?: number;
}

let clock = NOW;
/** A lookup of its own: the totals of a tenant are remembered for ten seconds. */
function look({ kid, durable, network, day = TODAY }: Seen): Promise<KnownDevice> {
  return createLookup(file.database, () => clock)({ kid, durable, network, day });
}

let requests = 0;
/** One sighting as ingest does it: look, then record. */
async function sight(sighting: Seen): Promise<Spread> {
  requests += 1;
  const id = requests;
  const { kid, durable, network, day = TODAY } = sighting;
  const knownDevice = await look(sighting);
  const entry = createEntry({
    kid,
    durable,
    network,
    day,
    id: String(id),
    marked: knownDevice.marked,
  });
  await createRecorder(file.database).record(entry);
  return knownDevice.spread;
}

const rows = (table: string, kid: string): Promise<readonly Record<string, unknown>[]> =>
  file.database.read(table).where({ kid }).select();

describe('networks of one id in a day', () => {
  it('the 21st shares it, and not the 20th', async () => {
    const device = { kid: 'many', durable: 'd' };
    const shared: boolean[] = [];
    for (let i = 1; i <= 22; i += 1)
      shared.push(isShared(await sight({ ...device, network: `n${i}` }), LIMITS));
    expect(shared.indexOf(true)).toBe(20);
    expect(shared.slice(20)).toEqual([true, true]);
  });

  it('are counted once each, whatever the number of visits', async () => {
    const device = { kid: 'again', durable: 'd' };
    for (let i = 0; i < 12; i += 1) await sight({ ...device, network: `n${i % 3}` });
    expect(await rows('network_days', 'again')).toEqual([
      { kid: 'again', durable: 'd', day: TODAY, networks: 3 },
    ]);
    expect((await look({ ...device, network: 'n1' })).spread).toMatchObject({
      networksToday: 3,
      pairsOfWeek: 3,
    });
    expect((await look({ ...device, network: 'new' })).spread).toMatchObject({
      networksToday: 4,
      pairsOfWeek: 4,
    });
  });

  it('are counted once when many visits come in one turn', async () => {
    const device = { kid: 'crowd', durable: 'd' };
    await Promise.all(Array.from({ length: 30 }, (_, i) => sight({ ...device, network: `n${i % 5}` })));
    expect(await rows('network_days', 'crowd')).toEqual([
      { kid: 'crowd', durable: 'd', day: TODAY, networks: 5 },
    ]);
  });

  it('belong to one id, one tenant and one day', async () => {
    for (let i = 0; i < 5; i += 1) await sight({ kid: 'own', durable: 'd', network: `n${i}` });
    const spread = async (sighting: Partial<Seen>): Promise<Spread> =>
      (await look({ kid: 'own', durable: 'd', network: 'x', ...sighting })).spread;
    expect(await spread({})).toMatchObject({ networksToday: 6, pairsOfWeek: 6 });
    expect(await spread({ durable: 'e' })).toMatchObject({ networksToday: 1, pairsOfWeek: 1 });
    expect(await spread({ kid: 'foreign' })).toMatchObject({ networksToday: 1, pairsOfWeek: 1 });
    expect(await spread({ day: TODAY + 1 })).toMatchObject({ networksToday: 1, pairsOfWeek: 6 });
  });
});

describe('pairs of a week', () => {
  it('are those of today and the six days before', async () => {
    const device = { kid: 'week', durable: 'd' };
    for (let back = 0; back < 10; back += 1) await sight({ ...device, network: 'n', day: TODAY - back });
    expect((await look({ ...device, network: 'n' })).spread.pairsOfWeek).toBe(7);
  });

  it('count all ids of a tenant', async () => {
    for (let i = 0; i < 6; i += 1) await sight({ kid: 'sum', durable: `d${i}`, network: 'n' });
    await sight({ kid: 'sum', durable: 'd0', network: 'n', day: TODAY - 7 });
    clock += 11_000;
    expect((await look({ kid: 'sum', durable: 'd0', network: 'n' })).spread.tenantPairsOfWeek).toBe(6);
  });

  const insert = async (kid: string, mine: number, total: number): Promise<void> => {
    const day = TODAY - 3;
    await file.database.transaction(async (tx) => {
      await tx('network_days').insert({ kid, durable: 'd', day, networks: mine });
      await tx('network_totals').insert([
        { kid, day, shard: 0, pairs: total - 1000 },
        { kid, day: day + 1, shard: 5, pairs: 1000 },
      ]);
    });
  };
  it.each([
    ['two of 5,000', 1, 5000, true],
    ['two of 4,999: too few pairs to say', 1, 4999, false],
    ['two of 8,192: exactly 2^-12', 1, 8192, true],
    ['two of 8,193: below', 1, 8193, false],
    ['a hundred of a million: below', 99, 1_000_000, false],
    ['a thousand of a million: above', 999, 1_000_000, true],
  ])('%s', async (name, mine, total, shared) => {
    await insert(name, mine, total);
    const { spread } = await look({ kid: name, durable: 'd', network: 'here' });
    expect(spread).toEqual({ networksToday: 1, pairsOfWeek: mine + 1, tenantPairsOfWeek: total });
    expect(isShared(spread, LIMITS)).toBe(shared);
  });
});

describe('what is kept', () => {
  it('marks live one day, counts a week', async () => {
    for (let back = 0; back < 10; back += 1)
      await sight({ kid: 'purge', durable: 'd', network: 'n', day: TODAY - back });
    const before = await look({ kid: 'purge', durable: 'd', network: 'n' });
    await purgeNetworks(file.database, NOW);
    expect((await rows('network_marks', 'purge')).map(({ day }) => day)).toEqual([TODAY]);
    for (const table of ['network_days', 'network_totals']) {
      const days = (await rows(table, 'purge')).map(({ day }) => Number(day));
      expect(Math.min(...days)).toBeGreaterThanOrEqual(TODAY - 7);
      expect(days).toContain(TODAY - 6);
    }
    expect(await look({ kid: 'purge', durable: 'd', network: 'n' })).toEqual(before);
  });
});
