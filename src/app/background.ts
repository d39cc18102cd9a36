import type { ClockRule } from '../db/clock-rule-store.ts';
import { parseRelay } from '../egress/smtp.ts';
import type { NetworkTypes } from '../ingest/network-type-files.ts';
import { DAY, SECOND } from '../lib/clock.ts';
import { every } from '../lib/jobs.ts';
import { keepCheckpoints } from '../log/checkpoint-service.ts';
import { thinCheckpoints } from '../log/checkpoint-store.ts';
import { makeCosigning } from '../log/cosign-service.ts';
import { type DispatcherDeps, startDispatcher } from '../notify/dispatcher.ts';
import { notify, staffLanesOf } from '../notify/notify.ts';
import { startHousekeeping } from '../ops/housekeeping.ts';
import { findContest } from '../rights/contests/store.ts';
import { recordEnded } from '../rights/erase/ended.ts';
import { dropOldErasures, outsideOf } from '../rights/erase/erasure-log.ts';
import type { RightsServices } from '../rights/services-make.ts';
import type { OpenedRights } from './features.ts';
import type { Platform } from './platform.ts';

/** Null: no relay is set. */
function mailer(
  { config, database, address }: Platform,
  contestTexts: RightsServices['contestTexts'],
): DispatcherDeps['mail'] {
  if (config.smtp_url === null) return null;
  return {
    relay: parseRelay(config.smtp_url),
    from: config.smtp_from,
    origin: () => address.url,
    async findContest(kid, contestId) {
      const contest = await findContest(database.read, contestTexts, { contestId });
      return contest?.kid === kid ? contest : null;
    },
  };
}

/** How often a replaced GPD_MMDB_FILE is looked for. */
const NETWORKS_MS = 30 * SECOND;

export const followNetworks = ({ logFault }: Platform, { refresh }: NetworkTypes) =>
  every(refresh, { ms: NETWORKS_MS, timer: setInterval, onFault: logFault('mmdb-unread') });

/** Delivers what waits in the outbox. */
export function startWebhooks(
  platform: Platform,
  { contestTexts }: RightsServices,
  findDecision: DispatcherDeps['findDecision'],
) {
  const mail = mailer(platform, contestTexts);
  const { database, clock, directory, masterKey, tenantOf, logFault, options } = platform;
  return startDispatcher(
    {
      database,
      masterKey,
      clock,
      webhook: directory.webhook,
      tenantOf,
      staffLanes: () => staffLanesOf(directory.consentTenants()),
      findDecision,
      mail,
      onFault: logFault('webhooks-failed'),
    },
    () => directory.hasWebhooks || mail !== null,
    options.intervals?.webhooks,
  );
}

/** What time alone makes due. */
export function startUpkeep(platform: Platform, rights: OpenedRights, clockRule: ClockRule) {
  const { eraser, eraseAgain, tellDue, tellUnfinished } = rights;
  const { config, database, clock, keyUse, log, logFault, options, book, tenantOf } = platform;
  const { witnesses, metrics } = platform;
  const checkpoints = { database, book, keysOf: tenantOf, clock };
  const cosign = makeCosigning({
    ...checkpoints,
    witnesses,
    onAnswer: (result) => metrics?.countCosigning(result),
    async onFork(kid, data) {
      const tenant = tenantOf(kid);
      log.error({ event: 'log.fork', tenant: kid });
      const about = { origin: tenant?.signer.name, ...data };
      const notice = { event: 'log.fork', data: about, at: clock() } as const;
      if (tenant) await database.transaction((tx) => notify(tx, tenant, notice));
    },
  });
  const keep = book.keep.bind(book);
  // At once, while the caller continues; the job reports what fails.
  book.keep = async (kept, after) => {
    const isKept = await keep(kept, after);
    if (isKept) setImmediate(() => void cosign(kept.kid).catch(() => {}));
    return isKept;
  };
  return startHousekeeping({
    database,
    macsOf: (kid) => tenantOf(kid)?.stateMac,
    async resumeErasures() {
      await eraseAgain();
      return (await eraser.resumeStale()).failures;
    },
    releasePages: () => eraser.releasePages(),
    tellDue,
    tellUnfinished,
    flushKeyUse: keyUse.flush,
    recordEnded: () => recordEnded(outsideOf(platform, config), clock()),
    dropOldErasures: (committed) =>
      dropOldErasures(outsideOf(platform, config), committed - config.erasure_lines_days * DAY),
    keepCheckpoints: (kid) => keepCheckpoints(checkpoints, kid),
    cosignCheckpoints: cosign,
    async thinCheckpoints(now) {
      await thinCheckpoints(database, now);
      await book.thin(now);
    },
    clock,
    clockRule,
    interval: options.intervals?.housekeeping,
    onClock: (event, ms) => log.warn({ event, seconds: Math.round(ms / SECOND) }),
    onFailure: ({ job, kid, error }) => logFault('sweep-failed', { job, tenant: kid })(error),
  });
}
