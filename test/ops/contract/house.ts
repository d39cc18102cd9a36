import { onTestFinished } from 'vitest';
import { jobsOf } from '../../../src/app/upkeep-service.ts';
import { followClock } from '../../../src/db/clock-rule-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { HOUR, MINUTE, SECOND } from '../../../src/lib/clock.ts';
import type { Job, JobFailure, JobFault } from '../../../src/lib/jobs.ts';
import { type HousekeepingOptions, startHousekeeping } from '../../../src/ops/housekeeping-service.ts';
import type { Services } from '../../../src/services.ts';
import { changeSealKeys, listSealKeys } from '../../../src/tenants/secrets-store.ts';
import { operatorAt } from '../../support/act.ts';
import { createGenerationRow, NOW } from '../../support/make.ts';

const SKEW_MS = 5 * MINUTE;

/** Runs a test's work in place of the job with this name, per tenant if the job takes one. */
type Instead = Readonly<Record<string, (kid: string) => Promise<unknown>>>;

/** These need an open installation; without one they have nothing to do. */
const idle = (): Promise<void> => Promise.resolve();
const IDLE: Instead = {
  'record-ended': idle,
  'tell-due': idle,
  'tell-unfinished': idle,
  'flush-key-use': idle,
  'thin-checkpoints': idle,
  'drop-old-erasures': idle,
  'release-pages': idle,
};

interface HouseOptions extends Partial<HousekeepingOptions> {
  readonly instead?: Instead;
  readonly resumeErasures?: () => Promise<readonly JobFault[]>;
}

/** The jobs of every feature over this database alone. */
function jobsOver(database: Database, { instead = {}, resumeErasures }: HouseOptions): readonly Job[] {
  const parts = {
    database,
    config: { max_clock_skew: SKEW_MS / SECOND },
    serverSecret: Buffer.alloc(32),
    tenantOf: () => undefined,
    keyUse: {},
    rights: {},
  };
  const jobs = jobsOf(parts as unknown as Services, { cosign: idle, eraseAgain: idle });
  const replaced = new Map(Object.entries({ ...IDLE, ...instead }));
  return jobs.map((job): Job => {
    const { name, every } = job;
    if ('together' in job) return { name, every, together: resumeErasures ?? (() => Promise.resolve([])) };
    const run = replaced.get(name);
    if (!run) return job;
    return 'each' in job ? { name, every, each: run } : { name, every, run: () => run('') };
  });
}

/** Housekeeping with a clock of the test, whose rounds run when the test calls them. */
export function createHouse(database: Database, begin = NOW, over: HouseOptions = {}) {
  let now = begin;
  let ticks = 0;
  const failures: JobFailure[] = [];
  const events: string[] = [];
  const rule = followClock(database, () => now, SKEW_MS);
  rule.catch(() => {});
  const housekeeping = startHousekeeping({
    database,
    jobs: jobsOver(database, over),
    clock: () => now,
    clockRule: { commit: async () => (await rule).commit() },
    monotonic: () => ticks,
    onFailure: (failure) => failures.push(failure),
    onClock: (event) => events.push(event),
    ...over,
  });
  // A test that fails must not leave rounds that run on a database which is being closed.
  onTestFinished(() => housekeeping.stop());
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
