import type { DeviceQuery, KnownDevice } from '../../src/ingest/ports.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { Database } from '../../src/storage/db.ts';
import { lookUpDevices, makeTotals } from '../../src/storage/device-lookup.ts';
import { makeRecorder as makeRealRecorder } from '../../src/storage/recorder.ts';
import { NOW, type TestEntry } from './make.ts';

/** The real recorder, for entries that hang on nothing that is known but the networks of their device. */
export function makeRecorder(database: Database) {
  const recorder = makeRealRecorder(database);
  return {
    async record(entry: TestEntry): Promise<'recorded' | 'replay' | 'stale'> {
      const { claim, kid, identified } = entry;
      const recorded = await recorder.record({
        claim,
        device: identified && { kid, ...identified },
        settle: (known) => ({
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
export function makeLookup(database: Database, clock: Clock = () => NOW) {
  const totals = makeTotals(clock);
  return async (query: DeviceQuery): Promise<KnownDevice> => {
    const [known] = await lookUpDevices(database.read, totals, [query]);
    return known as KnownDevice;
  };
}
