import type { Database } from '../../src/db/engine.ts';
import { createTotals, lookUpDevices } from '../../src/ingest/devices-store.ts';
import type { DeviceQuery, Recorded } from '../../src/ingest/ports.ts';
import { createRecorder as createRealRecorder } from '../../src/ingest/store.ts';
import type { KnownDevice } from '../../src/ingest/verdict/identity.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createNewTenant, NOW, type TestEntry } from './make.ts';

const tenants = new WeakMap<Database, Map<string, Promise<number>>>();

async function insertTenant(database: Database, kid: string): Promise<number> {
  const settings = JSON.stringify(createNewTenant(kid).tenant.settings);
  const row = { kid, created_at: NOW, revision: 0, settings };
  await database.transaction((tx) => tx('tenants').insert(row).onConflict('kid').ignore());
  return Number((await database.read('tenants').where({ kid }).first()).created_at);
}

/** Creates the tenant unless the test did. @returns its creation time */
export function ensureTenant(database: Database, kid: string): Promise<number> {
  const creationTimes = tenants.get(database) ?? new Map<string, Promise<number>>();
  tenants.set(database, creationTimes);
  const createdAt = creationTimes.get(kid) ?? insertTenant(database, kid);
  creationTimes.set(kid, createdAt);
  return createdAt;
}

/** Creates the real recorder, for entries that only depend on the stored networks of their device. */
export function createRecorder(database: Database) {
  const recorder = createRealRecorder(database, () => performance.now());
  return {
    async record(entry: TestEntry): Promise<'recorded' | Extract<Recorded, string>> {
      const { claim, kid, identified } = entry;
      const since = await ensureTenant(database, kid);
      const recorded = await recorder.record({
        claim: { ...claim, since },
        device: identified && { kid, ...identified },
        decide: (knownDevice) => ({
          ...entry,
          identified: identified && {
            ...identified,
            marked: identified.marked || knownDevice?.marked === true,
          },
        }),
      });
      return typeof recorded === 'string' ? recorded : 'recorded';
    },
    idle: () => recorder.idle(),
  };
}

/** Creates the real look-up, for a single device. */
export function createLookup(database: Database, clock: Clock = () => NOW) {
  const totals = createTotals(clock);
  return async (query: DeviceQuery): Promise<KnownDevice> => {
    const [knownDevice] = await lookUpDevices(database.read, totals, [query]);
    return knownDevice as KnownDevice;
  };
}
