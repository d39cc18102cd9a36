import type { IncomingMessage, ServerResponse } from 'node:http';
import { createLanes, type Lanes } from './app/lanes-service.ts';
import {
  type OpenServer,
  openServer,
  readSettings,
  type ServerSettings,
  type Stop,
} from './app/server-service.ts';
import { eraseAgainFirst, noteState, startBackground } from './app/upkeep-service.ts';
import { baseUrl, type Config } from './config.ts';
import { databaseAnswers } from './db/meta-store.ts';
import { createHttpServer } from './http/server.ts';
import { createDecisionFinder } from './ingest/decisions-service.ts';
import { SECOND } from './lib/clock.ts';
import { listen } from './ops/listen-service.ts';
import type { AppOptions, RunningApp } from './ops/running.ts';
import { createForwardedNote } from './ops/untrusted-forwarded-files.ts';
import { ROUTES } from './schema/routes.ts';

/** Starts and stops the server: `gpd serve`, the demo and tests call startApp with a configuration. */

const DRAIN_MS = 10 * SECOND;

/**
 * Stops in reverse order of the start, and all of them even if one fails.
 * @throws {Error} the first failure
 */
async function stopAll(stops: Stop[]): Promise<void> {
  const failures: unknown[] = [];
  for (const stop of stops.splice(0).reverse()) {
    try {
      await stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Opens the database, loads all tenants and listens. @throws {ConfigError} with a plain sentence */
export async function startApp(config: Config, options: AppOptions): Promise<RunningApp> {
  const settings = await readSettings(config);
  const stops: Stop[] = [];
  try {
    return await start(config, settings, options, stops);
  } catch (error) {
    // A failure to stop is ignored, so that the operator reads why the server did not start.
    await stopAll(stops).catch(() => {});
    throw error;
  }
}

/** Until the pages are loaded, requests outside the hot lanes wait for them. */
function createHttp(
  server: OpenServer,
  lanes: Lanes,
  pages: Promise<(request: IncomingMessage, response: ServerResponse) => void>,
) {
  const { services, settings, log } = server;
  const { config, clock, random } = services;
  return createHttpServer({
    lanes: new Map([
      [ROUTES.ingest.path, lanes.ingest],
      [ROUTES.checkConsent.path, lanes.check],
    ]),
    express: (request, response) => void pages.then((listener) => listener(request, response)),
    clock,
    random,
    knowsOrigin: server.knowsOrigin,
    trustedProxies: settings.trustedProxies,
    ja4Header: config.ja4_header?.toLowerCase() ?? null,
    onUntrustedForwarded: createForwardedNote(config, clock, (about) => log.warn(about)),
    onFault: server.onFault,
    onUnavailable: server.writes.onUnavailable,
    https: server.address.url.startsWith('https:'),
    tls: settings.tls,
    maxConnections: config.max_connections,
    answerTimeoutMs: config.answer_timeout * SECOND,
    onAnswered: server.metrics?.onAnswered,
  });
}

async function start(
  config: Config,
  settings: ServerSettings,
  options: AppOptions,
  stops: Stop[],
): Promise<RunningApp> {
  const server = await openServer(config, settings, options, stops);
  const { services, polling, address } = server;
  const { database, tenants, rights } = services;
  const eraseAgain = await eraseAgainFirst(server);
  const lanes = await createLanes(server);
  const findDecision = createDecisionFinder(database, tenants.find);
  let draining = false;
  const notReadyReasons = (): string[] =>
    (draining ? ['draining'] : []).concat(polling.notReadyReasons(), lanes.clockRule.notReadyReasons());
  const degraded = () => [server.writes, server.decryptor, upkeep].flatMap((part) => part.degraded());
  const pages = (async () => {
    const extra = (await options.routers?.({ url: () => address.url, database })) ?? [];
    const { createPages } = await import('./app/pages-service.ts');
    const swept = () => upkeep.swept();
    return createPages(server, lanes, { findDecision, notReady: notReadyReasons, degraded, swept }, extra);
  })();
  pages.catch(options.onFatal);
  const http = createHttp(server, lanes, pages);
  await noteState(server);
  const port = await listen(http, config, server.sockets.http);
  address.url = baseUrl(config, port);
  const { upkeep, networks } = startBackground(server, lanes.clockRule, { findDecision, eraseAgain }, stops);
  stops.push(() => pages.catch(() => {}));
  stops.push(() => Promise.all([lanes.idle(), rights.eraser.stop()]));
  server.metrics?.showReadiness({ notReady: notReadyReasons, degraded });
  return {
    url: address.url,
    port,
    notReady: notReadyReasons,
    pingDatabase: () => databaseAnswers(database),
    reload: async () => void (await Promise.allSettled([networks.runNow(), polling.refresh()])),
    async stop(deadlineMs = DRAIN_MS) {
      draining = true;
      await http.drain(deadlineMs);
      await stopAll(stops);
    },
  };
}
