import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { startAgents } from './agents/service.ts';
import { makeNonceClaimer } from './agents/store.ts';
import { makeDirectory } from './app/directory.ts';
import { startPolling } from './app/poll.ts';
import { baseUrl, type Config } from './config.ts';
import { makeConsentApi } from './consent/consent-make.ts';
import { makeConsentLane } from './consent/lane.ts';
import { readClientSecret } from './console/secret-files.ts';
import { answers } from './db/probe.ts';
import { makeGate } from './http/admission.ts';
import { makeServer } from './http/server.ts';
import { makeDecisionFinder } from './ingest/decisions-service.ts';
import { makeIngestDeps, publicNames } from './ingest/deps.ts';
import { noteEpochLength } from './ingest/epoch-length-store.ts';
import { ingest } from './ingest/ingest.ts';
import { makeIngestLane } from './ingest/lane.ts';
import { openNetworkTypes, unknownNetwork } from './ingest/network-type-files.ts';
import type { Unsealed } from './ingest/open.ts';
import { chooseOpening } from './ingest/opening/opening-worker.ts';
import type { IngestInput } from './ingest/ports.ts';
import { makeRecorder } from './ingest/recorder-store.ts';
import type { MasterKey } from './keys/master-key.ts';
import { SECOND } from './lib/clock.ts';
import { poolRandom } from './lib/random.ts';
import { makeUlid } from './lib/ulid.ts';
import { watchSkew } from './ops/clock-skew-service.ts';
import { startHousekeeping } from './ops/housekeeping.ts';
import { makeDaySalt, makeLimiters } from './ops/limits.ts';
import { listen, parseRanges, readTls } from './ops/listen.ts';
import { makeFaultLog } from './ops/log.ts';
import { startMetricsWhereAsked } from './ops/metrics/start.ts';
import { removeLeftovers } from './ops/restore-swap.ts';
import type { AppOptions, RunningApp } from './ops/running.ts';
import { makeStrangerNote } from './ops/strangers.ts';
import { NO_SOCKETS } from './ops/systemd/sockets.ts';
import { reapplyErasures } from './rights/erase/reapply-service.ts';
import { eraseOwn, makeEraseService } from './rights/erase/service.ts';
import { issueToken } from './rights/me/transparency-token.ts';
import { makeRightsUpkeep } from './rights/upkeep-service.ts';
import { openStore } from './tenants/installation-files.ts';
import { makeKeyFinder } from './tenants/key-finder-service.ts';
import { makeKeyUseCounter } from './tenants/key-use-service.ts';
import { readMasterKey } from './tenants/master-key-files.ts';
import { makeUnknownKeys } from './tenants/unknown-keys-service.ts';
import { VERSION } from './version.ts';
import { startDispatcher } from './webhooks/service.ts';

/** The composition root: the only place where adapters meet domains. */

const DRAIN_MS = 10 * SECOND;
const views = fileURLToPath(new URL('../views', import.meta.url));

/** Opens the store, loads all tenants and serves. @throws {ConfigError} with a plain sentence */
export async function startApp(config: Config, options: AppOptions): Promise<RunningApp> {
  const { log, intervals = {} } = options;
  const clock = options.clock ?? Date.now;
  const random = poolRandom(randomBytes);
  const tls = readTls(config);
  const clientSecret = readClientSecret(config);
  const trustedProxies = parseRanges(config.trusted_proxies);
  const isHosting = config.mmdb_file === null ? unknownNetwork : await openNetworkTypes(config.mmdb_file);
  const store = await openStore(config, { onUnknownCommit: options.onFatal, mayOpenReserve: true });
  const { database, serverSecret } = store;
  removeLeftovers(config);
  const { logFault, onFault } = makeFaultLog(log);
  const sockets = options.sockets ?? NO_SOCKETS;
  const metrics = await startMetricsWhereAsked(config, sockets.metrics, {
    database,
    version: VERSION,
    clock,
    onFault: logFault('metrics-failed'),
  });
  const keyUse = makeKeyUseCounter(database, clock);
  const opening = chooseOpening(options.openingThread ?? null, {
    tenants: (kid) => directory.tenant(kid),
    noteOpened: (kid, generation) => directory.noteOpened(kid, generation),
    onFault: logFault('opening-thread-ended'),
  });
  const directory = makeDirectory(clock, keyUse.note, opening.setKeys);
  const polling = await startPolling(database, directory, store.masterKey, {
    rereadMasterKey: () => readMasterKey(config),
    onFault: logFault('reload-failed'),
    onDamaged: ({ kid, error }) => logFault('tenant-damaged', { tenant: kid })(error),
    interval: intervals.poll,
  });
  const agents = await startAgents(database, {
    openDiscovery: config.wba_open_discovery,
    clock,
    onFault: logFault('agents-failed'),
    interval: intervals.agents,
  });
  const limiters = makeLimiters(config, database, serverSecret, clock);

  let draining = false;
  let stopConsole = async (): Promise<void> => {};
  let url = baseUrl(config);
  const publicHttps = url.startsWith('https:');
  const notReady = (): string[] => [
    ...(draining ? ['draining'] : []),
    ...(polling.stale() ? ['database: the last reload failed'] : []),
  ];

  const findDecision = makeDecisionFinder(database, directory.tenant);
  const tenantOf = (kid: string) => directory.consentTenant(kid);
  const dataDir = config.data_dir;
  const eraser = makeEraseService({ ...store.erasing, dataDir, clock, onFault: logFault('erasure-held-up') });
  const again = await reapplyErasures({ database, dataDir, tenantOf, eraser });
  if (again > 0) {
    log.warn({ event: 'erasures-applied-again', count: again });
    await polling.refresh();
  }
  const findKey = makeUnknownKeys({
    known: directory.apiKey,
    refresh: polling.refresh,
    now: () => performance.now(),
  });
  const consent = makeConsentApi({
    database,
    tenantOf,
    knowsOrigin: directory.knowsOrigin,
    eraseOwn: eraseOwn(eraser),
    findApiKey: makeKeyFinder(database, findKey, clock),
    limiter: limiters.consent,
    refresh: polling.refresh,
    clock,
  });

  const recorder = makeRecorder(database);
  const skew = await watchSkew(database, config.max_clock_skew * SECOND, clock);
  const ingestDeps = makeIngestDeps(config, {
    leastSkewMs: skew.least,
    tenants: (kid) => directory.tenant(kid),
    findAgentKey: agents.findKey,
    claimAgentNonce: makeNonceClaimer(database),
    authorities: () => publicNames(config, url),
    now: clock,
    recorder,
    proveConsent: consent.proveConsent,
    issueToken: ({ kid, requestId, session, origin, now }) =>
      issueToken(serverSecret, random, now, { kid, requestId }, { session, origin }),
  });
  const runIngest = (unsealed: Unsealed, input: IngestInput) =>
    ingest(ingestDeps, unsealed, publicHttps && !input.https ? { ...input, https: true } : input);
  const check = metrics?.countChecks(consent.consent.check) ?? consent.consent.check;
  const lane = makeIngestLane({
    open: opening.open,
    ingest: metrics?.countIngest(runIngest) ?? runIngest,
    limiter: limiters.ingest,
    gate: makeGate(),
    knowsOrigin: (origin) => directory.knowsOrigin(origin),
    random,
    isHosting,
    markNetwork: makeDaySalt(serverSecret, 'gpd/network/v1', clock),
    onFault,
  });

  // Express and its pages are loaded beside the start, not before it: the hot lane answers first.
  const express: Promise<RequestListener> = (async () => {
    const { makeRoutes } = await import('./app/routes.ts');
    const { wireRights } = await import('./rights/rights-make.ts');
    const { makeConsole } = await import('./console/console-routes.ts');
    const extra = (await options.routers?.({ url: () => url })) ?? [];
    const masterKey = (): MasterKey => polling.masterKey();
    const ingestTenantOf = directory.tenant;
    const keys = { serverSecret, clientSecret, masterKey };
    const wiring = { database, ...keys, views, tenantOf, ingestTenantOf, eraser, clock };
    const origin = (): string => new URL(url).origin;
    const staffConsole = makeConsole(config, { ...wiring, origin, onFault, logFault });
    stopConsole = () => staffConsole.stop();
    return makeRoutes({
      version: VERSION,
      notReady,
      swept: () => housekeeping.swept(),
      findPublicKey: (kid) => directory.publicKey(kid),
      consent,
      rights: wireRights(config, {
        ...wiring,
        limiter: limiters.privacy,
        knowsOrigin: (origin) => directory.knowsOrigin(origin),
        onFault: logFault('oidc-failed'),
      }),
      findDecision,
      views,
      https: publicHttps,
      extra: [staffConsole.router, ...extra],
      onFault,
    });
  })();
  express.catch(options.onFatal);

  const running = makeServer({
    lanes: new Map([
      ['/_fp/i/v1', lane],
      ['/v1/consent/can-process', makeConsentLane({ ...consent.consent, check, gate: makeGate() })],
    ]),
    express: (request, response) => void express.then((app) => app(request, response)),
    makeRequestId: () => `req_${makeUlid(clock, random)}`,
    trustedProxies,
    ja4Header: config.ja4_header?.toLowerCase() ?? null,
    onStrangerForwarded: makeStrangerNote(config, clock, (about) => log.warn(about)),
    onFault,
    https: publicHttps,
    tls,
    onAnswered: metrics?.onAnswered,
  });
  // Before the first request: what refuses consent leaves the database as it was.
  await noteEpochLength(database, config.epoch_days, clock())
    .then((was) => was !== null && log.warn({ event: 'epoch-days-changed', was, now: config.epoch_days }))
    .catch(logFault('epoch-days-unread'));
  const port = await listen(running, config, sockets.http).catch(async (error: unknown) => {
    await Promise.all([opening.stop(), polling.stop(), agents.stop(), metrics?.stop()]);
    await database.close();
    throw error;
  });
  url = baseUrl(config, port);
  const dispatcher = startDispatcher(
    {
      database,
      masterKey: () => polling.masterKey(),
      clock,
      webhook: (kid, id) => directory.webhook(kid, id),
      payloadKey: (kid) => directory.consentTenant(kid)?.principalWrap,
      findDecision,
      onFault: logFault('webhooks-failed'),
    },
    () => directory.hasWebhooks,
    intervals.webhooks,
  );
  const housekeeping = startHousekeeping({
    database,
    epochDays: config.epoch_days,
    ...makeRightsUpkeep({ database, eraser, tenantOf, clock }),
    refillReserve: () => store.reserve.refill(),
    flushKeyUse: keyUse.flush,
    noteSkew: skew.note,
    clock,
    interval: intervals.housekeeping,
    onClock: (event, ms) => log.warn({ event, seconds: Math.round(ms / SECOND) }),
    onFailure: ({ job, kid, error }) => logFault('sweep-failed', { job, tenant: kid })(error),
  });
  return {
    url,
    port,
    notReady,
    answers: () => answers(database),
    async stop(deadlineMs = DRAIN_MS) {
      draining = true;
      await running.drain(deadlineMs);
      await Promise.all([recorder.idle(), consent.idle(), eraser.stop()]);
      const others = [opening, polling, agents, housekeeping, dispatcher, metrics, { stop: stopConsole }];
      await Promise.all(others.map(async (part) => part?.stop()));
      await keyUse.flush().catch(logFault('key-use-lost'));
      await database.close();
    },
  };
}
