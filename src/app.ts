import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Router } from 'express';
import type { Logger } from 'pino';
import { makeDecisionFinder, makeKeyUse } from './app/decisions.ts';
import { type LiveDirectory, makeDirectory } from './app/directory.ts';
import { startHousekeeping } from './app/housekeeping.ts';
import { makeLimiters } from './app/limits.ts';
import { describeFault } from './app/log.ts';
import { masterKeyPath, readMasterKeyFile } from './app/master-key-file.ts';
import { startPolling } from './app/poll.ts';
import { openStore, type Store } from './app/store.ts';
import { baseUrl, type Config, ConfigError } from './config.ts';
import type { Limiter } from './http/hot.ts';
import { makeIngestLane } from './http/ingest-lane.ts';
import { makeServer, type RunningServer } from './http/server.ts';
import { POLICY_VERSION, RULES } from './ingest/classify/policy.ts';
import { type IngestDeps, ingest } from './ingest/pipeline.ts';
import { type Clock, DAY, SECOND } from './lib/clock.ts';
import { hmacSha256 } from './lib/hash.ts';
import { parseRange, type Range } from './lib/ip.ts';
import { makeUlid } from './lib/ulid.ts';
import { issueToken } from './rights/transparency-token.ts';
import { makeDeviceLookup, makeRecorder } from './storage/ingest-store.ts';
import { VERSION } from './version.ts';

/** The composition root: the only place where adapters meet domains. */

export interface RunningApp {
  readonly url: string;
  readonly port: number;
  readonly store: Store;
  /** Drains within `deadlineMs`, writes what was accepted, closes the database. */
  stop(deadlineMs?: number): Promise<void>;
}

export interface AppOptions {
  readonly log: Logger;
  readonly clock?: Clock;
  /** A COMMIT failed with an unknown outcome: the process must not go on. */
  readonly onFatal: (error: Error) => void;
  /** Further routes: the demo's pages. */
  readonly routers?: (context: { readonly url: () => string }) => Promise<readonly Router[]>;
}

const DRAIN_MS = 10 * SECOND;
const views = fileURLToPath(new URL('../views', import.meta.url));

function parseRanges(texts: readonly string[]): Range[] {
  return texts.map((text) => {
    try {
      return parseRange(text);
    } catch {
      throw new ConfigError(`GPD_TRUSTED_PROXIES: ${text} is not an address or CIDR`);
    }
  });
}

function readTls(config: Config): { cert: Buffer; key: Buffer } | null {
  if (config.tls_cert === null || config.tls_key === null) return null;
  try {
    return { cert: readFileSync(config.tls_cert), key: readFileSync(config.tls_key) };
  } catch {
    throw new ConfigError(
      'GPD_TLS_CERT or GPD_TLS_KEY cannot be read: name two PEM files that this user may read',
    );
  }
}

/** Client addresses are counted under a salt of the day: what a counter's key was is forgotten with the salt. */
function saltKeys(limiter: Limiter, serverSecret: Buffer, clock: Clock): Limiter {
  let salt: { day: number; key: Uint8Array } = { day: -1, key: new Uint8Array(0) };
  return (address) => {
    const day = Math.floor(clock() / DAY);
    if (salt.day !== day) salt = { day, key: hmacSha256(serverSecret, `gpd/rate/v1 ${day}`) };
    return limiter(hmacSha256(salt.key, address).toString('base64url'));
  };
}

function ingestDeps(
  config: Config,
  store: Store,
  directory: LiveDirectory,
  clock: Clock,
): IngestDeps & { idle(): Promise<void> } {
  const recorder = makeRecorder(store.database);
  return {
    tenants: (kid) => directory.tenant(kid),
    devices: makeDeviceLookup(store.database),
    recorder,
    idle: () => recorder.idle(),
    issueToken: ({ kid, requestId, session, origin, now }) =>
      issueToken(store.serverSecret, randomBytes, now, { kid, requestId }, { session, origin }),
    random: randomBytes,
    now: clock,
    maxSkewMs: config.max_clock_skew * SECOND,
    epochDays: config.epoch_days,
    policy: { version: POLICY_VERSION, rules: RULES },
  };
}

function listen(running: RunningServer, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    running.server.once('error', (error: NodeJS.ErrnoException) => {
      const where = `${config.host}:${config.port}`;
      const why: Readonly<Record<string, string>> = {
        EADDRINUSE: `${where} is taken by another program: stop it, or choose another port with --port`,
        EACCES: `this user may not listen on ${where}: choose a port above 1023 with --port`,
        EADDRNOTAVAIL: `${config.host} is no address of this machine: choose another with --host`,
      };
      reject(
        new ConfigError(why[error.code ?? ''] ?? `cannot listen on ${where} (${error.code ?? error.name})`),
      );
    });
    running.server.listen(config.port, config.host, () =>
      resolve((running.server.address() as AddressInfo).port),
    );
  });
}

/** Opens the store, loads all tenants and serves. @throws {ConfigError} with a plain sentence */
export async function startApp(config: Config, options: AppOptions): Promise<RunningApp> {
  const { log } = options;
  const clock = options.clock ?? Date.now;
  const tls = readTls(config);
  const trustedProxies = parseRanges(config.trusted_proxies);
  const store = await openStore(config, { onUnknownCommit: options.onFatal });
  const { database, serverSecret } = store;
  const directory = makeDirectory(clock);
  const polling = await startPolling(database, directory, store.masterKey, {
    rereadMasterKey: () => readMasterKeyFile(masterKeyPath(config)),
    onFault: (error) => log.error({ event: 'reload-failed', ...describeFault(error) }),
  });
  const deps = ingestDeps(config, store, directory, clock);
  const limiters = makeLimiters(config, database, clock);
  const onFault = (requestId: string, error: unknown): void =>
    log.error({ event: 'fault', requestId, ...describeFault(error) });

  let draining = false;
  let warned = false;
  let url = baseUrl(config);
  const notReady = (): string[] => [
    ...(draining ? ['draining'] : []),
    ...(polling.stale() ? ['database: the last reload failed'] : []),
  ];
  const lane = makeIngestLane({
    ingest: (input) => ingest(deps, input),
    limiter: saltKeys(limiters.ingest, serverSecret, clock),
    knowsOrigin: (origin) => directory.knowsOrigin(origin),
    random: randomBytes,
    onFault,
  });

  // Express and its pages are loaded beside the start, not before it: the hot lane answers first.
  const express: Promise<RequestListener> = (async () => {
    const { makeRoutes } = await import('./app/routes.ts');
    const extra = (await options.routers?.({ url: () => url })) ?? [];
    return makeRoutes({
      version: VERSION,
      notReady,
      findPublicKey: (kid) => directory.publicKey(kid),
      findApiKey: makeKeyUse(database, directory, clock),
      findDecision: makeDecisionFinder(database, directory),
      consentLimiter: limiters.consent,
      views,
      https: url.startsWith('https:'),
      extra,
      onFault,
    });
  })();
  express.catch(options.onFatal);

  const running = makeServer({
    lanes: new Map([['/_fp/i/v1', lane]]),
    express: (request, response) => void express.then((app) => app(request, response)),
    makeRequestId: () => `req_${makeUlid(clock, randomBytes)}`,
    trustedProxies,
    onStrangerForwarded: () => {
      if (!warned)
        log.warn({
          event: 'stranger-forwarded',
          hint: 'X-Forwarded-For from a peer that GPD_TRUSTED_PROXIES does not name is ignored',
        });
      warned = true;
    },
    onFault,
    tls,
  });
  const port = await listen(running, config).catch(async (error: unknown) => {
    await polling.stop();
    await database.close();
    throw error;
  });
  url = baseUrl(config, port);
  const housekeeping = startHousekeeping(database, clock, (error) =>
    log.error({ event: 'sweep-failed', ...describeFault(error) }),
  );
  return {
    url,
    port,
    store,
    async stop(deadlineMs = DRAIN_MS) {
      draining = true;
      await running.drain(deadlineMs);
      await deps.idle();
      await Promise.all([polling.stop(), housekeeping.stop()]);
      await database.close();
    },
  };
}
