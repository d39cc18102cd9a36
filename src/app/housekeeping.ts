import { planSweep } from '../keys/rotate.ts';
import { type Clock, DAY, HOUR, MINUTE } from '../lib/clock.ts';
import { makeSteadyClock } from '../lib/steady-clock.ts';
import { purgeAgentNonces } from '../storage/agent-store.ts';
import { sealAudit } from '../storage/audit-seal.ts';
import { JOB_MS, purgeJobs } from '../storage/console-jobs.ts';
import { purgeConsole } from '../storage/console-sessions.ts';
import type { Database } from '../storage/db.ts';
import { purgeNonces } from '../storage/decision-store.ts';
import { purgeKeyTraffic } from '../storage/key-traffic.ts';
import { purgeNetworks } from '../storage/network-store.ts';
import { purgeCounters } from '../storage/rate-counter.ts';
import { retain } from '../storage/retention.ts';
import { planRetention, type RetentionCounts } from '../storage/retention-due.ts';
import { makeSealKeyStore } from '../storage/seal-key-store.ts';
import { purgeExpired } from '../storage/session-store.ts';
import { purgeSummaries } from '../storage/summary-store.ts';
import { tally } from '../storage/tally-store.ts';
import { makeTenantStore } from '../storage/tenant-store.ts';
import { sealVerdicts } from '../storage/verdict-seal.ts';
import { purgeOutbox } from '../storage/webhook-store.ts';

/** Delivered and failed events can be sent again for so long. */
const OUTBOX_MS = 7 * DAY;

export interface Swept {
  readonly nonces: number;
  readonly counters: number;
  readonly keys: number;
}

/** Overwrites the private keys of generations whose grace is over. */
async function sweepKeys(database: Database, now: number): Promise<number> {
  const store = makeSealKeyStore(database);
  let count = 0;
  for (const { kid } of await makeTenantStore(database).list()) {
    if (planSweep(await store.list(kid), now).length === 0) continue;
    await store.change(kid, (keys) => {
      const changed = planSweep(keys, now);
      count += changed.length;
      const [result] = changed;
      return result ? { ok: true, changed, result } : { ok: false, why: 'no-such-generation' };
    });
  }
  return count;
}

/**
 * What time alone makes due: expired nonces, ended rate windows, retired keys. Safe on many nodes at once.
 * @param steady for what a clock that jumped ahead and is set back must not have done
 */
async function sweep(database: Database, now: number, steady: number): Promise<Swept> {
  const nonces = (await purgeNonces(database, steady)) + (await purgeAgentNonces(database, steady));
  const counters = await purgeCounters(database, now, 10 * MINUTE);
  await purgeExpired(database, now);
  await purgeOutbox(database, now - OUTBOX_MS);
  await purgeSummaries(database, now);
  await purgeConsole(database, now - DAY, now - DAY);
  await purgeJobs(database, now - JOB_MS);
  await purgeKeyTraffic(database, now);
  for (const { kid } of await makeTenantStore(database).list()) {
    await sealVerdicts(database, kid, steady);
    await sealAudit(database, kid, steady);
    await tally(database, kid, now);
  }
  await purgeNetworks(database, Math.floor(now / DAY));
  return { nonces, counters, keys: await sweepKeys(database, steady) };
}

/** What every tenant's retention takes away now, or would. */
export async function runRetention(
  database: Database,
  epochDays: number,
  now: number,
  dryRun = false,
): Promise<readonly (RetentionCounts & { readonly kid: string })[]> {
  const results = [];
  for (const { kid, settings } of await makeTenantStore(database).list()) {
    const rules = { kid, days: settings['retention.days'], epochDays, now };
    results.push({ kid, ...(await (dryRun ? planRetention : retain)(database, rules)) });
  }
  return results;
}

export interface HousekeepingDeps {
  readonly database: Database;
  readonly epochDays: number;
  /** Finishes erasures that something held up. */
  readonly resumeErasures: () => Promise<unknown>;
  /** Seals what an older release wrote about contests in the clear. */
  readonly sealWords: (kid: string) => Promise<unknown>;
  /** Room on the disk that an erasure spent, or that was never there. */
  readonly refillReserve: () => Promise<void>;
  /** Writes down which seal keys were in use. */
  readonly flushKeyUse: () => Promise<void>;
  readonly clock: Clock;
  /** Milliseconds that no change of the clock touches. */
  readonly monotonic?: () => number;
  readonly onFault: (error: unknown) => void;
}

/** Runs the sweep every minute and retention every hour until stopped; one at a time. */
export function startHousekeeping(deps: HousekeepingDeps): { stop(): Promise<void> } {
  const { database, clock, onFault } = deps;
  let running: Promise<unknown> = deps.refillReserve().catch(onFault);
  let retainedAt = Number.NEGATIVE_INFINITY;
  const monotonic = deps.monotonic ?? (() => performance.now());
  const steadyClock = makeSteadyClock(clock, monotonic);
  async function work(): Promise<void> {
    await deps.refillReserve();
    const steady = steadyClock();
    await sweep(database, clock(), steady);
    await deps.resumeErasures();
    await deps.flushKeyUse();
    if (monotonic() - retainedAt < HOUR) return;
    retainedAt = monotonic();
    await runRetention(database, deps.epochDays, steady);
    for (const { kid } of await makeTenantStore(database).list()) await deps.sealWords(kid);
  }
  const timer = setInterval(() => {
    running = running.then(() => work().catch(onFault));
  }, MINUTE);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
