import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { startAgents } from '../agents/service.ts';
import { baseUrl, type Config } from '../config.ts';
import type { FindApiKey } from '../http/register.ts';
import { noteRefusal } from '../http/reply.ts';
import { chooseDecryptor } from '../ingest/decrypt/decrypt-worker.ts';
import { MINUTE } from '../lib/clock.ts';
import { poolRandom } from '../lib/crypto.ts';
import { every } from '../lib/jobs.ts';
import { makeCheckpointBook } from '../log/checkpoint-files.ts';
import { readPolicy } from '../log/cosign-service.ts';
import { makeDaySalts } from '../ops/day-salt-service.ts';
import { makeLimiters } from '../ops/limits.ts';
import { hearInvalidStates, logRefusals, makeFaultLog } from '../ops/log.ts';
import { removeLeftovers } from '../ops/restore-swap.ts';
import type { AppOptions } from '../ops/running.ts';
import { NO_SOCKETS } from '../ops/systemd/sockets.ts';
import { openStore, type Store } from '../tenants/installation-files.ts';
import { makeKeyFinder, makeUnknownKeys } from '../tenants/key-finder-service.ts';
import { makeKeyUseCounter } from '../tenants/key-use-service.ts';
import { readMasterKey } from '../tenants/master-key-files.ts';
import { makeDirectory } from './directory.ts';
import { startPolling } from './poll.ts';

/** What the features of a server are made from: its database and keys, time and chance, and what it knows of the tenants. */
export type Platform = Awaited<ReturnType<typeof openPlatform>>;

/** Tenants and the keys that open their bundles, followed in the database; a thread opens with them. */
async function followTenants(base: Awaited<ReturnType<typeof openBase>>) {
  const { config, store, clock, logFault, keyUse, options } = base;
  const decryptor = chooseDecryptor(options.decryptThread ?? null, {
    tenants: (kid) => directory.tenant(kid),
    noteOpened: (kid, generation) => directory.noteOpened(kid, generation),
    onFault: logFault('decryptor-thread-ended'),
  });
  const directory = makeDirectory(clock, keyUse.note, decryptor.setKeys);
  const polling = await startPolling(store.database, directory, store.masterKey, {
    rereadMasterKey: () => readMasterKey(config),
    onFault: logFault('reload-failed'),
    onRecovered: () => base.log.info({ event: 'reload-recovered' }),
    onDamaged: ({ kid, error }) => logFault('tenant-damaged', { tenant: kid })(error),
    interval: options.intervals?.poll,
  });
  return { decryptor, directory, polling };
}

/**
 * Null without GPD_METRICS_LISTEN and a socket of the unit; then nothing of it is loaded either.
 * @throws {ConfigError} with the database closed, so that the process ends
 */
async function startMetrics(
  { database }: Store,
  config: Config,
  socket: number | null,
  onFault: (error: unknown) => void,
) {
  const where = socket ?? config.metrics_listen;
  if (where === null) return null;
  const metrics = await import('../ops/metrics/metrics.ts');
  return metrics.startMetrics(config, where, database, onFault).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
}

async function openBase(config: Config, options: AppOptions) {
  const clock = options.clock ?? Date.now;
  const witnesses = readPolicy(config);
  const store = await openStore(config, { onUnknownCommit: options.onFatal });
  removeLeftovers(config);
  const { logFault, onFault } = makeFaultLog(options.log);
  const sockets = options.sockets ?? NO_SOCKETS;
  const metrics = await startMetrics(store, config, sockets.metrics, logFault('metrics-failed'));
  return {
    config,
    options,
    log: options.log,
    clock,
    monotonic: () => performance.now(),
    random: poolRandom(randomBytes),
    views: fileURLToPath(new URL('../../views', import.meta.url)),
    store,
    database: store.database,
    serverSecret: store.serverSecret,
    witnesses,
    book: makeCheckpointBook(config.data_dir, store.serverSecret),
    keyUse: makeKeyUseCounter(store.database, clock),
    metrics,
    sockets,
    logFault,
    onFault,
    /** Where the server listens; the port is known once it does. */
    address: { url: baseUrl(config) },
  };
}

/** Opens the store and loads all tenants. @throws {ConfigError} with a plain sentence */
export async function openPlatform(config: Config, options: AppOptions) {
  const base = await openBase(config, options);
  const { database, clock, serverSecret, logFault, monotonic } = base;
  const { decryptor, directory, polling } = await followTenants(base);
  const agents = await startAgents(database, {
    openDiscovery: config.wba_open_discovery,
    clock,
    onFault: logFault('agents-failed'),
    interval: options.intervals?.agents,
  });
  const salts = makeDaySalts(database, clock, base.random);
  const renewing = every(salts.renew, {
    ms: MINUTE,
    timer: setInterval,
    onFault: logFault('day-salt-failed'),
  });
  await renewing.soon().catch(() => {});
  const deaf = [hearInvalidStates(base.log), logRefusals(base.log, monotonic)];
  const { refresh } = polling;
  const findKey = makeUnknownKeys({ known: directory.apiKey, refresh, now: monotonic });
  const findApiKey: FindApiKey = makeKeyFinder(database, findKey, clock);
  return {
    ...base,
    decryptor,
    directory,
    polling,
    agents,
    refresh,
    findApiKey,
    saltOf: salts.saltOf,
    limiters: makeLimiters(config, database, { serverSecret, saltOf: salts.saltOf, clock }),
    tenantOf: directory.consentTenant,
    ingestTenantOf: directory.tenant,
    knowsOrigin: (origin: string): boolean => {
      const known = directory.knowsOrigin(origin);
      // The pages of gpd itself name no origin of a tenant.
      if (!known && origin !== base.address.url) noteRefusal('unknown-origin');
      return known;
    },
    masterKey: polling.masterKey,
    /** Stops what follows the database and closes it. */
    async stop(): Promise<void> {
      for (const stopListening of deaf) stopListening();
      await Promise.all([
        decryptor.stop(),
        polling.stop(),
        agents.stop(),
        renewing.stop(),
        base.metrics?.stop(),
      ]);
      await base.keyUse.flush().catch(logFault('key-use-lost'));
      await database.close();
    },
  };
}
