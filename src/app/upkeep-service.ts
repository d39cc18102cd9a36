import { agentJobs } from '../agents/store.ts';
import { consentJobs } from '../consent/sessions-store.ts';
import { consoleJobs } from '../console/session-store.ts';
import type { ClockRule } from '../db/clock-rule-store.ts';
import { BrokenLog } from '../db/line-log.ts';
import { parseRelay, sendMail } from '../egress/smtp.ts';
import { noteEpochLength } from '../ingest/epoch-length-store.ts';
import { ingestJobs } from '../ingest/store.ts';
import { SECOND } from '../lib/clock.ts';
import { every, type Job } from '../lib/jobs.ts';
import { explainBrokenBook } from '../log/checkpoint-service.ts';
import { createCosigning } from '../log/cosign-service.ts';
import { logJobs } from '../log/service.ts';
import type { DeliveryDeps } from '../notify/delivery-service.ts';
import { startDispatcher } from '../notify/dispatcher-service.ts';
import { notifyJobs } from '../notify/jobs-service.ts';
import { notify } from '../notify/notify-service.ts';
import { startHousekeeping } from '../ops/housekeeping-service.ts';
import { noteCertificate } from '../ops/listen-service.ts';
import { rateJobs } from '../ops/rate-store.ts';
import { findContest } from '../rights/contests/store.ts';
import { rightsJobs } from '../rights/create-rights-service.ts';
import { recordEnded } from '../rights/erase/ended-store.ts';
import { erasureLogAccess } from '../rights/erase/erasure-log-service.ts';
import { createReapplying } from '../rights/erase/reapply-service.ts';
import type { Services } from '../services.ts';
import { tenantJobs } from '../tenants/secrets-store.ts';
import type { OpenServer, Stop } from './server-service.ts';

/** Interval of the checks for a replaced GPD_MMDB_FILE. */
const NETWORKS_MS = 30 * SECOND;

const followNetworks = ({ logFault, settings: { networks } }: OpenServer) =>
  every(networks.refresh, { ms: NETWORKS_MS, timer: setInterval, onFault: logFault('mmdb-unread') });

/** Before the first request: what refuses consent leaves the database as it was. */
async function noteEpochs({ services, log, logFault }: OpenServer): Promise<void> {
  const { config, database, clock } = services;
  await noteEpochLength(database, config.epoch_days, clock())
    .then((was) => was !== null && log.warn({ event: 'epoch-days-changed', was, now: config.epoch_days }))
    .catch(logFault('epoch-days-unread'));
}

/** The log and the database may come from two installations. The server serves: each checkpoint is 503. */
async function noteCheckpoints({ services, log }: OpenServer): Promise<void> {
  await services.book.last('').catch((error: unknown) => {
    if (!(error instanceof BrokenLog)) throw error;
    log.error({ event: 'checkpoints-broken', reason: explainBrokenBook(error) });
  });
}

/** Logs what an operator should know before the first request. */
export async function noteState(server: OpenServer): Promise<void> {
  const { services, settings, log } = server;
  await noteEpochs(server);
  await noteCheckpoints(server);
  if (settings.tls) noteCertificate(settings.tls, services.clock(), log);
}

/**
 * An older backup may have brought back what was erased: erased again before anybody is answered.
 * @returns does the same again, for a standby that takes over
 */
export async function eraseAgainFirst({ services, polling, log, logFault }: OpenServer) {
  const logAccess = erasureLogAccess(services, services.config);
  const reapply = createReapplying({
    ...services,
    ...logAccess,
    eraser: services.rights.eraser,
    onBroken: (reason) => log.error({ event: 'erasure-log-broken', reason }),
  });
  const eraseAgain = async (): Promise<void> => {
    const count = await reapply();
    if (count === 0) return;
    log.warn({ event: 'erasures-applied-again', count });
    await polling.refresh();
  };
  await eraseAgain();
  // The job of every minute tries again.
  await recordEnded(logAccess, services.clock()).catch(logFault('sweep-failed', { job: 'record-ended' }));
  return eraseAgain;
}

/** Null: no relay is set. */
function createMailer({ services, address, options }: OpenServer): DeliveryDeps['mail'] {
  const { config, database, rights } = services;
  if (config.smtp_url === null) return null;
  const relay = parseRelay(config.smtp_url);
  return {
    send: options.sendMail ?? ((mail) => sendMail(relay, mail)),
    from: config.smtp_from,
    origin: () => address.url,
    async findContest(kid, contestId) {
      const contest = await findContest(database.read, rights.contestTexts, { contestId });
      return contest?.kid === kid ? contest : null;
    },
  };
}

/** Delivers what waits in the outbox. */
const startWebhooks = (server: OpenServer, findDecision: DeliveryDeps['findDecision']) =>
  startDispatcher(
    {
      ...server.services,
      findDecision,
      mail: createMailer(server),
      onFault: server.logFault('webhooks-failed'),
    },
    server.options.intervals?.webhooks,
  );

/** Asks the witnesses for each checkpoint that is kept. */
function startCosigning({ services, settings: { witnesses }, metrics, log }: OpenServer) {
  const { database, book, tenantOf, clock } = services;
  const cosign = createCosigning({
    ...services,
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
  // At once, while who kept it continues; the job reports what fails.
  book.onKept((kid) => setImmediate(() => void cosign(kid).catch(() => {})));
  return cosign;
}

/**
 * The jobs of all features, in the order in which they run.
 * @param cosign asks the witnesses for the last checkpoint of a tenant
 * @param eraseAgain applies what a standby that took over does not know
 */
export const jobsOf = (
  services: Services,
  { cosign, eraseAgain }: { cosign: (kid: string) => Promise<void>; eraseAgain: () => Promise<void> },
): readonly Job[] => [
  ...ingestJobs(services),
  ...agentJobs(services),
  ...rateJobs(services),
  ...consentJobs(services),
  ...notifyJobs(services),
  ...consoleJobs(services),
  ...logJobs(services, cosign),
  ...tenantJobs(services),
  ...rightsJobs(services, eraseAgain),
];

/** Starts the jobs that time alone makes due. */
function startUpkeep(server: OpenServer, clockRule: ClockRule, eraseAgain: () => Promise<void>) {
  const { services, log, logFault, metrics, options } = server;
  return startHousekeeping({
    ...services,
    jobs: jobsOf(services, { cosign: startCosigning(server), eraseAgain }),
    clockRule,
    interval: options.intervals?.housekeeping,
    onRun: metrics?.countJob,
    onClock: (event, ms) => log.warn({ event, seconds: Math.round(ms / SECOND) }),
    onFailure: ({ job, kid, error }) => logFault('sweep-failed', { job, tenant: kid })(error),
  });
}

/** Starts all that runs without a request: deliveries, jobs, and the look for a replaced network file. */
export function startBackground(
  server: OpenServer,
  clockRule: ClockRule,
  work: {
    readonly findDecision: DeliveryDeps['findDecision'];
    readonly eraseAgain: () => Promise<void>;
  },
  stops: Stop[],
) {
  const webhooks = startWebhooks(server, work.findDecision);
  const upkeep = startUpkeep(server, clockRule, work.eraseAgain);
  const networks = followNetworks(server);
  stops.push(
    networks.stop,
    () => upkeep.stop(),
    () => webhooks.stop(),
  );
  return { upkeep, networks };
}
