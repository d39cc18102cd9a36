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

/** Of each kid that a test records for there is a tenant, whether the test made it or not. @returns when it was made */
export function ensureTenant(database: Database, kid: string): Promise<number> {
  const known = tenants.get(database) ?? new Map<string, Promise<number>>();
  tenants.set(database, known);
  const made = known.get(kid) ?? insertTenant(database, kid);
  known.set(kid, made);
  return made;
}

/** The real recorder, for entries that hang on nothing that is known but the networks of their device. */
export function createRecorder(database: Database) {
  const recorder = createRealRecorder(database, () => performance.now());
  return {
    async record(entry: TestEntry): Promise<'recorded' | Extract<Recorded, string>> {
      const { claim, kid, identified } = entry;
      const since = await ensureTenant(database, kid);
      const recorded = await recorder.record({
        claim: { ...claim, since },
        device: identified && { kid, ...identified },
        decide: (known) => ({
          ...entry,
          identified: identified && { ...identified, marked: identified.marked || known?.marked === true },
        }),
      });
      return typeof recorded === 'string' ? recorded : 'recorded';
    },
    idle: () => recorder.idle(),
  };
}

/** The real lookup, asked for one device. */
export function createLookup(database: Database, clock: Clock = () => NOW) {
  const totals = createTotals(clock);
  return async (query: DeviceQuery): Promise<KnownDevice> => {
    const [known] = await lookUpDevices(database.read, totals, [query]);
    return known as KnownDevice;
  };
}
