import { followClock } from '../../../src/db/clock-rule-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { HOUR, MINUTE } from '../../../src/lib/clock.ts';
import type { JobFailure } from '../../../src/lib/jobs.ts';
import { type HousekeepingDeps, startHousekeeping } from '../../../src/ops/housekeeping-service.ts';
import { changeSealKeys, listSealKeys } from '../../../src/tenants/secrets-store.ts';
import { operatorAt } from '../../support/act.ts';
import { createGenerationRow, NOW } from '../../support/make.ts';

const SKEW_MS = 5 * MINUTE;

/** Housekeeping with a clock of the test, whose rounds run when the test calls them. */
export function createHouse(database: Database, begin = NOW, over: Partial<HousekeepingDeps> = {}) {
  let now = begin;
  let ticks = 0;
  const failures: JobFailure[] = [];
  const events: string[] = [];
  const rule = followClock(database, () => now, SKEW_MS);
  rule.catch(() => {});
  const housekeeping = startHousekeeping({
    database,
    resumeErasures: () => Promise.resolve([]),
    notifyDueContests: () => Promise.resolve(),
    notifyUnfinishedErasures: () => Promise.resolve(),
    releasePages: () => Promise.resolve(),
    flushKeyUse: () => Promise.resolve(),
    macsOf: () => undefined,
    recordEnded: () => Promise.resolve(),
    dropOldErasures: () => Promise.resolve(),
    keepCheckpoints: () => Promise.resolve(),
    cosignCheckpoints: () => Promise.resolve(),
    thinCheckpoints: () => Promise.resolve(),
    clock: () => now,
    clockRule: { skewMs: SKEW_MS, commit: async () => (await rule).commit() },
    monotonic: () => ticks,
    onFailure: (failure) => failures.push(failure),
    onClock: (event) => events.push(event),
    ...over,
  });
  return {
    swept: () => housekeeping.swept(),
    degraded: () => housekeeping.degraded(),
    stop: () => housekeeping.stop(),
    /** Events of the clock. */
    events,
    /** Runs a round and returns its complaints in order, as `job kid`. */
    async round(after = MINUTE): Promise<string[]> {
      now += after;
      ticks += after;
      failures.length = 0;
      await housekeeping.round();
      return failures.map(({ job, kid }) => `${job} ${kid}`).sort();
    },
    /** Sets the clock, as a person or NTP would. */
    setClock(ms: number): void {
      now += ms;
    },
    at: () => now,
  };
}

/** Inserts a decision without the recorder, which writes nothing into an hour that is anchored already. */
export function addDecision(database: Database, kid: string, id: string, at: number): Promise<unknown> {
  const row = { kid, request_id: `req_${id}-${kid}`, decided_at: at, class: 'human', durable: null };
  return database.transaction((tx) =>
    tx('decisions').insert({ ...row, verdict: '{}', salt: 's', commitment: '00'.repeat(32) }),
  );
}

/** Adds a private key whose grace period ends at `retiresAt`. */
export async function addRetiringKey(database: Database, kid: string, retiresAt = NOW - HOUR): Promise<void> {
  await changeSealKeys(
    database,
    kid,
    () => {
      const result = createGenerationRow({ kid, generation: 2, state: 'retiring', retiresAt });
      return { ok: true, changed: [result], result };
    },
    operatorAt(NOW),
  );
}

export async function privateKeyOf(database: Database, kid: string): Promise<string | null | undefined> {
  const keys = await listSealKeys(database.read, kid);
  return keys.find(({ generation }) => generation === 2)?.wrappedPrivate;
}

export const countOf = async (database: Database, table: string, kid: string): Promise<number> =>
  ((await database.read(table).where({ kid })) as unknown[]).length;
