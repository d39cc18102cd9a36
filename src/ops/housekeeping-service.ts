import { purgeAgentNonces } from '../agents/store.ts';
import { purgeExpired } from '../consent/sessions-store.ts';
import { purgeConsole } from '../console/session-store.ts';
import { type ClockEvent, type ClockRule, keepNoncesFrom } from '../db/clock-rule-store.ts';
import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import { purgeNonces } from '../ingest/decisions-store.ts';
import { purgeNetworks } from '../ingest/devices-store.ts';
import { purgeSummaries } from '../ingest/summary-store.ts';
import { type Generation, type KeyPlan, planSweep } from '../keys/generation.ts';
import { type Clock, DAY, HOUR, isoTime, MINUTE, SECOND } from '../lib/clock.ts';
import {
  type Complaints,
  createComplaints,
  createDeadlines,
  type Deadlines,
  every,
  type Job,
  type JobFailure,
  type JobFault,
  JobLate,
  type JobResult,
  type Moment,
  runJobs,
} from '../lib/jobs.ts';
import { anchorAudit, anchorVerdicts } from '../log/anchors-store.ts';
import type { EntryMacs } from '../log/problems.ts';
import { purgeOutbox } from '../notify/outbox-store.ts';
import { tally } from '../rights/tally-store.ts';
import { sweepOrphans } from '../rights/tenant-rows-store.ts';
import { purgeKeyTraffic } from '../tenants/key-use-store.ts';
import { changeSealKeys, listSealKeys } from '../tenants/secrets-store.ts';
import { recordRound } from './job-store.ts';
import { purgeCounters } from './rate-store.ts';
import { RETENTION_JOB, retainTenant } from './retention-service.ts';

/** Runs the jobs that time makes due, such as deletions, anchors and notices, once a minute or once an hour on every node. */

/** Milliseconds after which a round continues without a job, or without one tenant of it. */
const deadlineOf = (job: Job): number => (job.every === HOUR || 'together' in job ? 10 * MINUTE : MINUTE);

/** A job that was not done for this long makes the node degraded. */
const staleAfter = ({ every }: Job): number => Math.max(15 * MINUTE, 3 * every);

/** At SIGTERM a job gets this long to end (contract section 10: the process ends within 15 s). */
const STOP_MS = 2 * SECOND;

/** Delivered and failed events can be sent again for this time. */
const OUTBOX_MS = 7 * DAY;

/** Overwrites the private keys of generations whose grace period has ended. */
async function sweepKeys(database: Database, kid: string, now: number): Promise<void> {
  if (planSweep(await listSealKeys(database.read, kid), now).length === 0) return;
  const plan = (keys: readonly Generation[]): KeyPlan => {
    const changed = planSweep(keys, now);
    const [result] = changed;
    return result ? { ok: true, changed, result } : { ok: false, reason: 'no-such-generation' };
  };
  await changeSealKeys(database, kid, plan, { role: 'system', ref: 'grace-over', at: now });
}

/** Jobs that run once for the whole installation. */
type InstallationJob = 'releasePages' | 'flushKeyUse' | 'recordEnded';
type TenantJob = 'keepCheckpoints' | 'cosignCheckpoints';
/** Jobs that enqueue one notice each: for contests that are due soon or overdue, and for delayed erasures. */
type NoticeJob = 'notifyDueContests' | 'notifyUnfinishedErasures';

export interface HousekeepingDeps
  extends Readonly<Record<InstallationJob, () => Promise<void>>>,
    Readonly<Record<TenantJob, (kid: string) => Promise<unknown>>>,
    Readonly<Record<NoticeJob, (kid: string, now: number) => Promise<unknown>>> {
  readonly database: Database;
  /** MAC keys for the entries that the jobs append; undefined for a tenant whose keys cannot be read. */
  readonly macsOf: (kid: string) => EntryMacs | undefined;
  /** Finishes incomplete erasures. */
  readonly resumeErasures: () => Promise<readonly JobFault[]>;
  readonly thinCheckpoints: (now: number) => Promise<void>;
  readonly dropOldErasures: (until: number) => Promise<void>;
  readonly clock: Clock;
  readonly clockRule: Pick<ClockRule, 'commit' | 'skewMs'>;
  /** Milliseconds that no change of the clock touches. */
  readonly monotonic?: () => number;
  /** Milliseconds from one round to the next. */
  readonly interval?: number | undefined;
  /** Milliseconds for a job, or for one tenant of it. */
  readonly deadlineOf?: (job: Job) => number;
  readonly onFailure: (failure: JobFailure) => void;
  /** Called for each run of a job, to count it. */
  readonly onRun?: ((job: string, result: JobResult) => void) | undefined;
  readonly onClock: (event: ClockEvent, ms: number) => void;
}

/** The name of this job is exported because `gpd doctor` reports its failures. */
export const COSIGN_JOB = 'cosign-checkpoints';

/**
 * The jobs in the order in which they run. Each is safe on several nodes at once. Hourly jobs may take long, so the rounds
 * of each minute continue meanwhile.
 */
function jobsOf(deps: HousekeepingDeps, shouldContinue: () => boolean): readonly Job[] {
  const { database, macsOf } = deps;
  const anchorWith =
    (by: typeof anchorAudit) =>
    (kid: string, { until }: Moment) =>
      by(database, kid, until, macsOf(kid));
  const noncesFrom = ({ until }: Moment): number => keepNoncesFrom(until, deps.clockRule.skewMs);
  return [
    { name: 'purge-nonces', every: MINUTE, run: (at) => purgeNonces(database, noncesFrom(at)) },
    { name: 'purge-agent-nonces', every: MINUTE, run: (at) => purgeAgentNonces(database, noncesFrom(at)) },
    { name: 'purge-rates', every: MINUTE, run: ({ now }) => purgeCounters(database, now, 10 * MINUTE) },
    { name: 'purge-sessions', every: MINUTE, run: ({ now }) => purgeExpired(database, now) },
    { name: 'purge-outbox', every: MINUTE, run: ({ until }) => purgeOutbox(database, until - OUTBOX_MS) },
    { name: 'purge-summaries', every: MINUTE, run: ({ until }) => purgeSummaries(database, until) },
    {
      name: 'purge-console',
      every: MINUTE,
      run: ({ until }) => purgeConsole(database, until - DAY, until - DAY),
    },
    { name: 'purge-key-traffic', every: MINUTE, run: ({ until }) => purgeKeyTraffic(database, until) },
    { name: 'seal-verdicts', every: MINUTE, each: anchorWith(anchorVerdicts) },
    { name: 'seal-audit', every: MINUTE, each: anchorWith(anchorAudit) },
    { name: 'keep-checkpoints', every: MINUTE, each: deps.keepCheckpoints },
    { name: COSIGN_JOB, every: MINUTE, each: deps.cosignCheckpoints },
    { name: 'tally', every: MINUTE, each: (kid, { until }) => tally(database, kid, until) },
    { name: 'purge-networks', every: MINUTE, run: ({ until }) => purgeNetworks(database, until) },
    {
      name: 'destroy-keys',
      every: MINUTE,
      each: (kid, { until }) => sweepKeys(database, kid, until),
    },
    { name: 'record-ended', every: MINUTE, run: deps.recordEnded },
    { name: 'resume-erasures', every: MINUTE, together: deps.resumeErasures },
    { name: 'tell-due', every: MINUTE, each: (kid, { until }) => deps.notifyDueContests(kid, until) },
    {
      name: 'tell-unfinished',
      every: MINUTE,
      each: (kid, { until }) => deps.notifyUnfinishedErasures(kid, until),
    },
    { name: 'flush-key-use', every: MINUTE, run: deps.flushKeyUse },
    {
      name: RETENTION_JOB,
      every: HOUR,
      each: (kid, { until }) =>
        retainTenant(database, kid, until, { shouldContinue: shouldContinue, macs: macsOf(kid) }),
    },
    { name: 'thin-checkpoints', every: HOUR, run: ({ until }) => deps.thinCheckpoints(until) },
    { name: 'drop-old-erasures', every: HOUR, run: ({ until }) => deps.dropOldErasures(until) },
    { name: 'release-pages', every: HOUR, run: deps.releasePages },
    { name: 'sweep-orphans', every: HOUR, run: () => sweepOrphans(database) },
  ];
}

/** When this process last finished its jobs; null: not since its start. It never makes a node unready. */
export interface Swept {
  /** The last round after which no job was failing. */
  readonly completeAt: string | null;
  /** The last time that retention succeeded for every tenant. */
  readonly retentionAt: string | null;
}

/** Names of two steps around the jobs that can fail too: committing the time before them, and recording their results. */
const CLOCK_JOB = 'commit-time';
const RECORD_JOB = 'record-round';

interface Rounds {
  readonly deps: HousekeepingDeps;
  readonly jobs: readonly Job[];
  readonly complaints: Complaints;
  readonly monotonic: () => number;
  readonly interval: number;
  readonly deadlines: Deadlines;
  readonly ranAt: Map<string, number>;
  readonly startedAt: number;
  /** The start of the last run of each job that had no failure. */
  readonly doneAt: Map<string, number>;
  readonly failing: Set<string>;
  stopping: boolean;
  hourly: Promise<void> | null;
  clockEvent: ClockEvent;
  swept: Swept;
}

/** @returns null where the time cannot be committed: then no job runs, because the clock may be wrong */
async function commitTime(rounds: Rounds, every: number): Promise<number | null> {
  const { clockRule, onClock } = rounds.deps;
  try {
    const commit = () => clockRule.commit();
    const { at, event, offMs } = await rounds.deadlines.wait(`${CLOCK_JOB} ${every}`, MINUTE, commit);
    if (event !== rounds.clockEvent) onClock(event, offMs);
    rounds.clockEvent = event;
    return at;
  } catch (error) {
    rounds.complaints.note([CLOCK_JOB], [{ job: CLOCK_JOB, kid: null, error }]);
    return null;
  }
}

/** Counts a job as due half a round early, because a timer is never exact. `every` counts rounds, of a minute by default. */
function dueJobs({ jobs, ranAt, interval }: Rounds, now: number): readonly Job[] {
  const waitMs = (every: number): number => (every / MINUTE - 0.5) * interval;
  return jobs.filter(
    ({ name, every }) => now - (ranAt.get(name) ?? Number.NEGATIVE_INFINITY) >= waitMs(every),
  );
}

/** Counts each job that ran, and remembers when it last had no failure. */
function noteResults(
  rounds: Rounds,
  ran: readonly string[],
  failures: readonly JobFailure[],
  startedAt: number,
) {
  const { ranAt, doneAt, failing } = rounds;
  for (const name of ran) {
    const errors = failures.filter(({ job }) => job === name).map(({ error }) => error);
    const isLate = errors.some((error) => error instanceof JobLate);
    rounds.deps.onRun?.(name, isLate ? 'late' : errors.length > 0 ? 'failed' : 'done');
    ranAt.set(name, startedAt);
    if (errors.length > 0) failing.add(name);
    else {
      failing.delete(name);
      doneAt.set(name, startedAt);
    }
  }
}

async function runDue(rounds: Rounds, every: number): Promise<void> {
  const { deps, deadlines, failing } = rounds;
  const until = await commitTime(rounds, every);
  if (until === null) return;
  const startedAt = rounds.monotonic();
  const due = dueJobs(rounds, startedAt).filter((job) => job.every === every);
  if (due.length === 0) return;
  const ran = due.map(({ name }) => name);
  const failures = [
    ...(await runJobs(
      due,
      { now: deps.clock(), until },
      {
        kids: () => listKids(deps.database),
        stopping: () => rounds.stopping,
        wait: deadlines.wait,
        deadlineOf: deps.deadlineOf ?? deadlineOf,
      },
    )),
  ];
  if (rounds.stopping) return;
  noteResults(rounds, ran, failures, startedAt);
  // The present time and not that of the start: while an hourly round ran, later rounds may have been recorded.
  const at = deps.clock();
  // Hourly jobs may end first, before a job of each minute could fail.
  const complete =
    failing.size === 0 && rounds.jobs.every(({ name, every }) => every === HOUR || rounds.ranAt.has(name));
  const isRetentionDone = ran.includes(RETENTION_JOB) && !failing.has(RETENTION_JOB);
  const round = { at, ran, failures: [...failures], complete, isRetentionDone };
  const record = () => recordRound(deps.database, round);
  await deadlines
    .wait(`${RECORD_JOB} ${every}`, MINUTE, record)
    .catch((error: unknown) => failures.push({ job: RECORD_JOB, kid: null, error }));
  rounds.complaints.note([...ran, CLOCK_JOB, RECORD_JOB], failures);
  rounds.swept = {
    completeAt: complete ? isoTime(at) : rounds.swept.completeAt,
    retentionAt: isRetentionDone ? isoTime(at) : rounds.swept.retentionAt,
  };
}

async function runRound(rounds: Rounds): Promise<void> {
  rounds.hourly ??= runDue(rounds, HOUR)
    .catch((error: unknown) => rounds.deps.onFailure({ job: RECORD_JOB, kid: null, error }))
    .finally(() => {
      rounds.hourly = null;
    });
  await runDue(rounds, MINUTE);
}

const STALE = ['housekeeping'];

/** @returns why the node is degraded: some job was not done for long */
function degradedParts({ jobs, doneAt, monotonic, startedAt }: Rounds): readonly string[] {
  const now = monotonic();
  const isStale = (job: Job): boolean => now - (doneAt.get(job.name) ?? startedAt) > staleAfter(job);
  return jobs.some(isStale) ? STALE : [];
}

/** Runs the jobs until `stop`. */
export function startHousekeeping(deps: HousekeepingDeps) {
  const { monotonic = () => performance.now(), interval = MINUTE, onFailure } = deps;
  const complaints = createComplaints(onFailure);
  const rounds: Rounds = {
    deps,
    jobs: jobsOf(deps, () => !rounds.stopping),
    complaints,
    monotonic,
    interval,
    deadlines: createDeadlines(setTimeout),
    startedAt: monotonic(),
    ranAt: new Map(),
    doneAt: new Map(),
    failing: new Set(),
    stopping: false,
    hourly: null,
    clockEvent: 'clock-right',
    swept: { completeAt: null, retentionAt: null },
  };
  const loop = every(() => runRound(rounds), {
    ms: interval,
    timer: setInterval,
    onFault: (error) => onFailure({ job: RECORD_JOB, kid: null, error }),
  });
  return {
    swept: () => rounds.swept,
    degraded: () => degradedParts(rounds),
    /** Runs the jobs that are due. A second call waits for the first. */
    async round() {
      await loop.runNow();
      await rounds.hourly;
    },
    async stop() {
      rounds.stopping = true;
      const timer = setTimeout(rounds.deadlines.abandon, STOP_MS);
      await loop.stop();
      await rounds.hourly;
      clearTimeout(timer);
    },
  };
}
