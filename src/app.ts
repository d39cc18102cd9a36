import type { Router } from 'express';
import { createRoutes } from './app/routes-service.ts';
import {
  type OpenServer,
  openServer,
  readSettings,
  type ServerSettings,
  type Stop,
} from './app/server-service.ts';
import { eraseAgainFirst, noteState, startBackground } from './app/upkeep-service.ts';
import { baseUrl, type Config } from './config.ts';
import { followClock } from './db/clock-rule-store.ts';
import { databaseAnswers } from './db/meta-store.ts';
import { createExpressApp } from './http/express-app.ts';
import { createRouteTable, isPage, type RouteTable } from './http/routes.ts';
import { createHttpServer } from './http/server.ts';
import { createDecisionFinder } from './ingest/decisions-service.ts';
import { SECOND } from './lib/clock.ts';
import { listen } from './ops/listen-service.ts';
import type { AppOptions, RunningApp } from './ops/running.ts';
import { createForwardedNote } from './ops/untrusted-forwarded-files.ts';

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

function admitting(routes: RouteTable, admit: AppOptions['admit']): RouteTable {
  if (!admit) return routes;
  return {
    ...routes,
    async answer(found, request) {
      await admit(request);
      return routes.answer(found, request);
    },
  };
}

/** The table of routes with Express behind it. */
function createHttp(
  server: OpenServer,
  { served, deps, behind }: ReturnType<typeof createRoutes>,
  extra: readonly Router[],
) {
  const { services, settings, options, log, onFault } = server;
  const { config, clock, random } = services;
  const pages = served.filter(isPage);
  return createHttpServer({
    routes: admitting(createRouteTable(deps, served), options.admit),
    express: createExpressApp({ routers: extra, pages, behind, views: server.views, onFault }),
    clock,
    random,
    knowsOrigin: server.knowsOrigin,
    trustedProxies: settings.trustedProxies,
    ja4Header: config.ja4_header?.toLowerCase() ?? null,
    onUntrustedForwarded: createForwardedNote(config, clock, (about) => log.warn(about)),
    onFault,
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
  const { database, clock, tenants, rights } = services;
  const eraseAgain = await eraseAgainFirst(server);
  const findDecision = createDecisionFinder(database, tenants.find);
  // Before the first bundle is judged by it.
  const clockRule = await followClock(database, clock, config.max_clock_skew * SECOND);
  let draining = false;
  const notReady = (): string[] =>
    (draining ? ['draining'] : []).concat(polling.notReadyReasons(), clockRule.notReadyReasons());
  const degraded = () => [server.writes, server.decryptor, upkeep].flatMap((part) => part.degraded());
  const swept = () => upkeep.swept();
  const routes = createRoutes(server, clockRule, { findDecision, notReady, degraded, swept });
  const extra = (await options.routers?.({ url: () => address.url, database })) ?? [];
  const http = createHttp(server, routes, extra);
  await noteState(server);
  const port = await listen(http, config, server.sockets.http);
  address.url = baseUrl(config, port);
  const { upkeep, networks } = startBackground(server, clockRule, { findDecision, eraseAgain }, stops);
  stops.push(() => Promise.all([routes.idle(), rights.eraser.stop()]));
  server.metrics?.showReadiness({ notReady, degraded });
  return {
    url: address.url,
    port,
    hasTenants: () => tenants.all().length > 0,
    notReady,
    pingDatabase: () => databaseAnswers(database),
    reload: async () => void (await Promise.allSettled([networks.runNow(), polling.refresh()])),
    async stop(deadlineMs = DRAIN_MS) {
      draining = true;
      await http.drain(deadlineMs);
      await stopAll(stops);
    },
  };
}
