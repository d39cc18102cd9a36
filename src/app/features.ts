import { makeNonceClaimer } from '../agents/store.ts';
import { makeBotAuth } from '../agents/verify.ts';
import type { Config } from '../config.ts';
import { makeConsentApi } from '../consent/consent-make.ts';
import { makeConsentLane } from '../consent/routes.ts';
import { readClientSecret } from '../console/secret-files.ts';
import { followClock } from '../db/clock-rule-store.ts';
import { makeConcurrencyLimit } from '../http/limiter.ts';
import { noteEpochLength } from '../ingest/epoch-length-store.ts';
import type { IssueToken } from '../ingest/ingest.ts';
import { openNetworkTypes, UNKNOWN_NETWORKS } from '../ingest/network-type-files.ts';
import { createIngest } from '../ingest/route.ts';
import { SECOND } from '../lib/clock.ts';
import { makeDaySalt } from '../ops/limits.ts';
import { parseRanges, readTls } from '../ops/listen.ts';
import { recordEnded } from '../rights/erase/ended.ts';
import { eraseOwn } from '../rights/erase/erase.ts';
import { outsideOf } from '../rights/erase/erasure-log.ts';
import { makeReapplying } from '../rights/erase/reapply.ts';
import { issueToken } from '../rights/me/transparency.ts';
import { makeRights } from '../rights/services-make.ts';
import type { Platform } from './platform.ts';

/** What cannot be right at a start is refused before anything is opened. @throws {ConfigError} */
export async function readSettings(config: Config) {
  return {
    tls: readTls(config),
    clientSecret: readClientSecret(config),
    trustedProxies: parseRanges(config.trusted_proxies),
    networks: config.mmdb_file === null ? UNKNOWN_NETWORKS : await openNetworkTypes(config.mmdb_file),
  };
}

export type Settings = Awaited<ReturnType<typeof readSettings>>;

/** An older backup may have brought back what was erased: erased again before anybody is answered. */
async function openRights(platform: Platform) {
  const { config, tenantOf, log, logFault, refresh, clock } = platform;
  const rights = makeRights(platform, { onFault: logFault('erasure-held-up') });
  const { eraser } = rights;
  const outside = outsideOf(platform, config);
  const reapply = makeReapplying({
    ...outside,
    tenantOf,
    eraser,
    clock,
    onBroken: (reason) => log.error({ event: 'erasure-log-broken', reason }),
  });
  const eraseAgain = async (): Promise<void> => {
    const again = await reapply();
    if (again === 0) return;
    log.warn({ event: 'erasures-applied-again', count: again });
    await refresh();
  };
  await eraseAgain();
  // The job of every minute tries again.
  await recordEnded(outside, clock()).catch(logFault('sweep-failed', { job: 'record-ended' }));
  return { ...rights, eraseAgain };
}

export type OpenedRights = Awaited<ReturnType<typeof openRights>>;

export type Features = Awaited<ReturnType<typeof makeFeatures>>;

/** The features of a server in the order of their ranks; what is loaded later is in pages.ts. */
export async function makeFeatures(platform: Platform, { networks }: Settings) {
  const { config, database, clock, random, serverSecret, metrics, limiters } = platform;
  const rights = await openRights(platform);
  const { logFault } = platform;
  const botAuth = makeBotAuth(config, () => platform.address.url, {
    findKey: platform.agents.findKey,
    claimNonce: makeNonceClaimer(database),
  });
  const consent = makeConsentApi({
    ...platform,
    limits: limiters.consent,
    botAuth,
    onDoubtFault: logFault('consent-doubt-lost'),
    eraseOwn: eraseOwn(rights.eraser),
  });
  const issue: IssueToken = ({ session, origin, now, ...subject }) =>
    issueToken(serverSecret, random, now, subject, { session, origin });
  const clockRule = await followClock(database, clock, config.max_clock_skew * SECOND);
  const ingest = createIngest({
    ...platform,
    isHosting: networks.isHosting,
    markNetwork: makeDaySalt(platform, 'gpd/network/v1'),
    requireClock: clockRule.requireClock,
    proveConsent: consent.proveConsent,
    grants: consent.grants,
    botAuth,
    issueToken: issue,
    linkedTo: rights.linkedTo,
    counted: (run) => metrics?.countIngest(run) ?? run,
  });
  const check = metrics?.countChecks(consent.consent.check) ?? consent.consent.check;
  const consentLane = makeConsentLane({ ...consent.consent, check, admission: makeConcurrencyLimit() });
  return { rights, consent, consentLane, clockRule, ingest, issueToken: issue };
}

/** Before the first request: what refuses consent leaves the database as it was. */
export async function noteEpochs({ config, database, clock, log, logFault }: Platform): Promise<void> {
  await noteEpochLength(database, config.epoch_days, clock())
    .then((was) => was !== null && log.warn({ event: 'epoch-days-changed', was, now: config.epoch_days }))
    .catch(logFault('epoch-days-unread'));
}
