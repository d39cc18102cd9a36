import { SECOND } from '../lib/clock.ts';
import { keepCheckpoints } from '../log/checkpoint-service.ts';
import { thinCheckpoints } from '../log/checkpoint-store.ts';
import type { watchSkew } from '../ops/clock-skew-service.ts';
import { startHousekeeping } from '../ops/housekeeping.ts';
import { buryKeys, outsideOf } from '../rights/erase/tombstone-files.ts';
import type { RightsServices } from '../rights/services-make.ts';
import { type DispatcherDeps, startDispatcher } from '../webhooks/service.ts';
import type { Platform } from './platform.ts';

export type SkewWatch = Awaited<ReturnType<typeof watchSkew>>;

/** Delivers what waits in the outbox. */
export function startWebhooks(platform: Platform, findDecision: DispatcherDeps['findDecision']) {
  const { database, clock, random, directory, masterKey, tenantOf, logFault, options } = platform;
  return startDispatcher(
    {
      database,
      masterKey,
      clock,
      random,
      webhook: (kid, id) => directory.webhook(kid, id),
      payloadKey: (kid) => tenantOf(kid)?.principalWrap,
      findDecision,
      onFault: logFault('webhooks-failed'),
    },
    () => directory.hasWebhooks,
    options.intervals?.webhooks,
  );
}

/** What time alone makes due. */
export function startUpkeep(platform: Platform, { eraser, held }: RightsServices, skew: SkewWatch) {
  const { config, database, clock, store, keyUse, log, logFault, options, book, tenantOf } = platform;
  const checkpoints = { database, book, keysOf: tenantOf, clock };
  return startHousekeeping({
    database,
    resumeErasures: async () => (await eraser.resumeStale()).failures,
    releasePages: () => eraser.releasePages(),
    resumeHeldErasures: (kid) => held.resumeStale(kid),
    refillReserve: () => store.reserve.refill(),
    flushKeyUse: keyUse.flush,
    buryKeys: (plan, now) => buryKeys(outsideOf(platform, config), plan, now),
    keepCheckpoints: (kid) => keepCheckpoints(checkpoints, kid),
    async thinCheckpoints(now) {
      await thinCheckpoints(database, now);
      await book.thin(now);
    },
    noteSkew: skew.note,
    clock,
    interval: options.intervals?.housekeeping,
    onClock: (event, ms) => log.warn({ event, seconds: Math.round(ms / SECOND) }),
    onFailure: ({ job, kid, error }) => logFault('sweep-failed', { job, tenant: kid })(error),
  });
}
