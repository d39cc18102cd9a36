import { planSweep } from '../keys/rotate.ts';
import { type Clock, DAY, MINUTE } from '../lib/clock.ts';
import { purgeAgentNonces } from '../storage/agent-store.ts';
import type { Database } from '../storage/db.ts';
import { purgeNonces } from '../storage/decision-store.ts';
import { purgeNetworks } from '../storage/network-store.ts';
import { purgeCounters } from '../storage/rate-counter.ts';
import { makeSealKeyStore } from '../storage/seal-key-store.ts';
import { purgeExpired } from '../storage/session-store.ts';
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

/** What time alone makes due: expired nonces, ended rate windows, retired keys. Safe on many nodes at once. */
async function sweep(database: Database, now: number): Promise<Swept> {
  const nonces = (await purgeNonces(database, now)) + (await purgeAgentNonces(database, now));
  const counters = await purgeCounters(database, now, 10 * MINUTE);
  await purgeExpired(database, now);
  await purgeOutbox(database, now - OUTBOX_MS);
  for (const { kid } of await makeTenantStore(database).list()) await sealVerdicts(database, kid, now);
  await purgeNetworks(database, Math.floor(now / DAY));
  return { nonces, counters, keys: await sweepKeys(database, now) };
}

/** Runs the sweep every minute until stopped; one at a time. */
export function startHousekeeping(
  database: Database,
  clock: Clock,
  onFault: (error: unknown) => void,
): { stop(): Promise<void> } {
  let running: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(() => sweep(database, clock()).catch(onFault));
  }, MINUTE);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
