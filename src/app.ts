import { followNetworks, startUpkeep, startWebhooks } from './app/background.ts';
import { makeFeatures, noteEpochs, readSettings } from './app/features.ts';
import { openPlatform } from './app/platform.ts';
import { baseUrl, type Config } from './config.ts';
import { answers } from './db/meta-store.ts';
import { makeServer } from './http/server.ts';
import { makeDecisionFinder } from './ingest/decisions-service.ts';
import { SECOND } from './lib/clock.ts';
import { makeUlid } from './lib/crypto.ts';
import { listen } from './ops/listen.ts';
import type { AppOptions, RunningApp } from './ops/running.ts';
import { makeForwardedNote } from './ops/untrusted-forwarded.ts';
import { ROUTES } from './schema/routes.ts';

/** The composition root: a platform, the features in the order of their ranks, then a server that listens. */

const DRAIN_MS = 10 * SECOND;

/** Opens the store, loads all tenants and serves. @throws {ConfigError} with a plain sentence */
export async function startApp(config: Config, options: AppOptions): Promise<RunningApp> {
  const settings = await readSettings(config);
  const platform = await openPlatform(config, options);
  const { database, clock, random, polling, address, log, onFault, metrics } = platform;
  const features = await makeFeatures(platform, settings);
  const { rights, consent, consentLane, clockRule, ingest } = features;
  const findDecision = makeDecisionFinder(database, platform.ingestTenantOf);
  let draining = false;
  const notReady = (): string[] => (draining ? ['draining'] : []).concat(polling.wrong(), clockRule.wrong());
  const pages = (async () => {
    const extra = (await options.routers?.({ url: () => address.url })) ?? [];
    const { clientSecret } = settings;
    const swept = () => housekeeping.swept();
    const { makePages } = await import('./app/pages.ts');
    return makePages(platform, features, { findDecision, clientSecret, extra, notReady, swept });
  })();
  pages.catch(options.onFatal);
  const running = makeServer({
    lanes: new Map([
      [ROUTES.ingest.path, ingest.lane],
      [ROUTES.checkConsent.path, consentLane],
    ]),
    express: (request, response) => void pages.then((listener) => listener(request, response)),
    makeRequestId: () => `req_${makeUlid(clock, random)}`,
    knowsOrigin: platform.knowsOrigin,
    trustedProxies: settings.trustedProxies,
    ja4Header: config.ja4_header?.toLowerCase() ?? null,
    onUntrustedForwarded: makeForwardedNote(config, clock, (about) => log.warn(about)),
    onFault,
    https: address.url.startsWith('https:'),
    tls: settings.tls,
    onAnswered: metrics?.onAnswered,
  });
  await noteEpochs(platform);
  const port = await listen(running, config, platform.sockets.http).catch(async (error: unknown) => {
    await platform.stop();
    throw error;
  });
  address.url = baseUrl(config, port);
  const dispatcher = startWebhooks(platform, rights, findDecision);
  const housekeeping = startUpkeep(platform, rights, clockRule);
  const networks = followNetworks(platform, settings.networks);
  return {
    url: address.url,
    port,
    notReady,
    answers: () => answers(database),
    reload: async () => void (await Promise.allSettled([networks.soon(), polling.refresh()])),
    async stop(deadlineMs = DRAIN_MS) {
      draining = true;
      await running.drain(deadlineMs);
      await Promise.all([ingest.idle(), consent.idle(), rights.eraser.stop()]);
      await pages.catch(() => {});
      await Promise.all([networks.stop(), housekeeping.stop(), dispatcher.stop()]);
      await platform.stop();
    },
  };
}
