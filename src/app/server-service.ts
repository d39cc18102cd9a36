import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { startAgents } from '../agents/service.ts';
import { baseUrl, type Config, readClientSecret } from '../config.ts';
import { refuseForeignObjects } from '../db/foreign-objects.ts';
import { noteRefusal } from '../http/reply.ts';
import { chooseDecryptor } from '../ingest/decrypt/decrypt-worker.ts';
import { openNetworkTypes, UNKNOWN_NETWORKS } from '../ingest/network-type-files.ts';
import { MINUTE } from '../lib/clock.ts';
import { poolRandom } from '../lib/crypto.ts';
import { every } from '../lib/jobs.ts';
import { readPolicy } from '../log/cosign-service.ts';
import { createDaySalts } from '../ops/day-salt-store.ts';
import { createDayHash, createLimiters } from '../ops/limits-service.ts';
import { parseRanges, readTls } from '../ops/listen-service.ts';
import { createFaultLog, logInvalidStates, logRefusals } from '../ops/log-service.ts';
import { removeLeftovers } from '../ops/restore-swap-service.ts';
import type { AppOptions } from '../ops/running.ts';
import { NO_SOCKETS } from '../ops/systemd/socket-files.ts';
import { createWriteWatch } from '../ops/write-faults.ts';
import { TABLES } from '../rights/person-map.ts';
import { createServices, type Services } from '../services.ts';
import { createKeyFinder, createUnknownKeys } from '../tenants/key-finder-service.ts';
import { masterKeyPath, readMasterKey, requireRandomKey } from '../tenants/master-key-files.ts';
import { startPolling } from './poll-service.ts';

/** Stops one thing that was started; the last that was started stops first. */
export type Stop = () => unknown;

/**
 * Reads the files of the configuration: a wrong one is refused before anything is opened.
 * @throws {ConfigError}
 */
export async function readSettings(config: Config) {
  return {
    tls: readTls(config),
    clientSecret: readClientSecret(config),
    trustedProxies: parseRanges(config.trusted_proxies),
    networks: config.mmdb_file === null ? UNKNOWN_NETWORKS : await openNetworkTypes(config.mmdb_file),
    witnesses: readPolicy(config),
  };
}

export type ServerSettings = Awaited<ReturnType<typeof readSettings>>;

type FaultLog = ReturnType<typeof createFaultLog>;

/**
 * Null without GPD_METRICS_LISTEN and a socket of the unit; then nothing of it is loaded either.
 * @throws {ConfigError}
 */
async function startMetrics(services: Services, socket: number | null, { logFault }: FaultLog) {
  const address = socket ?? services.config.metrics_listen;
  if (address === null) return null;
  const metrics = await import('../ops/metrics/metrics-service.ts');
  return metrics.startMetrics(services, address, logFault('metrics-failed'));
}

/** Tenants and the keys that decrypt their bundles, followed in the database; a thread decrypts with them. */
async function followTenants(services: Services, options: AppOptions, { logFault }: FaultLog, stops: Stop[]) {
  const { config, database, tenants } = services;
  const decryptor = chooseDecryptor(options.decryptThread ?? null, {
    tenants: tenants.find,
    allKeys: () => new Map(tenants.all().map(({ kid, sealKeys }) => [kid, sealKeys])),
    noteOpened: tenants.noteOpened,
    onFault: logFault('decryptor-thread-ended'),
  });
  stops.push(decryptor.stop);
  tenants.watchSealKeys(decryptor.setKeys);
  const polling = await startPolling(database, tenants, {
    rereadMasterKey: () => readMasterKey(config),
    onFault: logFault('reload-failed'),
    onRecovered: () => options.log.info({ event: 'reload-recovered' }),
    onDamaged: ({ kid, error }) => logFault('tenant-damaged', { tenant: kid })(error),
    interval: options.intervals?.poll,
  });
  stops.push(polling.stop);
  return { decryptor, polling };
}

/** The directories of Web Bot Auth agents, fetched in the background. */
async function followAgents(services: Services, options: AppOptions, { logFault }: FaultLog, stops: Stop[]) {
  const { config, database, clock } = services;
  const agents = await startAgents(database, {
    openDiscovery: config.wba_open_discovery,
    clock,
    onFault: logFault('agents-failed'),
    interval: options.intervals?.agents,
  });
  stops.push(agents.stop);
  return agents;
}

/** The salts of the days, renewed before they are needed. */
async function followSalts({ database, clock, random }: Services, { logFault }: FaultLog, stops: Stop[]) {
  const salts = createDaySalts(database, clock, random);
  const onFault = logFault('day-salt-failed');
  const renewing = every(salts.renew, { ms: MINUTE, timer: setInterval, onFault });
  stops.push(renewing.stop);
  await renewing.runNow().catch(() => {});
  return salts.saltOf;
}

function createOriginCheck(tenants: Services['tenants'], address: { readonly url: string }) {
  return (origin: string): boolean => {
    const isKnownOrigin = tenants.knowsOrigin(origin);
    // The pages of gpd itself name no origin of a tenant.
    if (!isKnownOrigin && origin !== address.url) noteRefusal('unknown-origin', origin);
    return isKnownOrigin;
  };
}

/** A server's own parts, with the services. */
export type OpenServer = Awaited<ReturnType<typeof openServer>>;

/**
 * Opens the database, loads all tenants and follows what changes.
 * @throws {ConfigError} with a plain sentence
 */
export async function openServer(
  config: Config,
  settings: ServerSettings,
  options: AppOptions,
  stops: Stop[],
) {
  const { log, sockets = NO_SOCKETS } = options;
  const faults = createFaultLog(log);
  const { logFault } = faults;
  const monotonic = (): number => performance.now();
  const writes = createWriteWatch(log, monotonic);
  const services = await createServices(config, {
    onWrite: writes.onWrite,
    clock: options.clock,
    random: poolRandom(randomBytes),
    onUnknownCommit: options.onFatal,
    witnesses: settings.witnesses,
    onErasureFault: logFault('erasure-held-up'),
  });
  const { database, serverSecret, tenants, keyUse, clock } = services;
  stops.push(() => database.close());
  requireRandomKey(masterKeyPath(config), readMasterKey(config));
  await refuseForeignObjects(database, TABLES);
  stops.push(() => keyUse.flush().catch(logFault('key-use-lost')));
  removeLeftovers(config);
  const metrics = await startMetrics(services, sockets.metrics, faults);
  if (metrics) stops.push(() => metrics.stop());
  if (metrics) writes.onCount(metrics.countWriteFault);
  const { decryptor, polling } = await followTenants(services, options, faults, stops);
  const agents = await followAgents(services, options, faults, stops);
  const saltOf = await followSalts(services, faults, stops);
  stops.push(logInvalidStates(log), logRefusals(log, monotonic));
  const day = { serverSecret, saltOf, clock };
  const { nextLook } = polling;
  const findKey = createUnknownKeys({ findKnownKey: tenants.findApiKey, nextLook, now: monotonic });
  /** The address at which the server listens; its port is known once it does. */
  const address = { url: baseUrl(config) };
  return {
    services,
    settings,
    options,
    log,
    logFault,
    onFault: faults.onFault,
    metrics,
    writes,
    sockets,
    monotonic,
    decryptor,
    polling,
    agents,
    address,
    limiters: createLimiters(config, database, day),
    findApiKey: createKeyFinder(database, findKey, clock),
    /** Hashes under a key of the day; `label` keeps two uses apart. */
    markerFor: (label: string) => createDayHash(day, label),
    knowsOrigin: createOriginCheck(tenants, address),
    views: fileURLToPath(new URL('../../views', import.meta.url)),
  };
}
