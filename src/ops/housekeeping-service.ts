import type { ClockEvent, ClockRule } from '../db/clock-rule-store.ts';
import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import type { OnStep } from '../db/purge.ts';
import { type Clock, isoTime, MINUTE, SECOND } from '../lib/clock.ts';
import {
  type Complaints,
  createComplaints,
  createDeadlines,
  type Deadlines,
  every,
  type Job,
  type JobFailure,
  JobLate,
  type JobResult,
  runJobs,
} from '../lib/jobs.ts';
import type { EntryMacs } from '../log/problems.ts';
import { RETENTION_JOB, type RetentionCounts, retainTenant } from '../rights/retention/store.ts';
import { recordRound } from './job-store.ts';

/**
 * Runs the jobs of all features that time makes due, on every node: each alone, with its deadline, for one
 * tenant alone. Jobs that are due less often than every minute may take long, so the rounds of each minute
 * continue meanwhile.
 */

/** True for a job whose runs the rounds of each minute do not wait for. */
const isSlow = ({ every }: Job): boolean => every > MINUTE;

/** Milliseconds after which a round continues without a job, or without one tenant of it. */
const usualDeadline = (job: Job): number => (isSlow(job) || 'together' in job ? 10 * MINUTE : MINUTE);

/** A job that was not done for this long makes the node degraded. */
const staleAfter = ({ every }: Job): number => Math.max(15 * MINUTE, 3 * every);

/** At SIGTERM a job gets this long to end (contract section 10: the process ends within 15 s). */
const STOP_MS = 2 * SECOND;

export interface HousekeepingOptions {
  readonly database: Database;
  /** In the order in which they run. Each is safe on several nodes at once. */
  readonly jobs: readonly Job[];
  readonly clock: Clock;
  readonly clockRule: Pick<ClockRule, 'commit'>;
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

/** When this process last finished its jobs; null: not since its start. It never makes a node unready. */
export interface Swept {
  /** The last round after which no job was failing. */
  readonly completeAt: string | null;
  /** The last time that retention succeeded for every tenant. */
  readonly retentionAt: string | null;
}

/**
 * Names of two steps around the jobs that can fail too: committing the time before them, and recording their
 * results.
 */
const CLOCK_JOB = 'commit-time';
const RECORD_JOB = 'record-round';

interface Rounds extends HousekeepingOptions {
  readonly monotonic: () => number;
  readonly interval: number;
  readonly deadlineOf: (job: Job) => number;
  readonly complaints: Complaints;
  readonly deadlines: Deadlines;
  readonly ranAt: Map<string, number>;
  readonly startedAt: number;
  /** The start of the last run of each job that had no failure. */
  readonly doneAt: Map<string, number>;
  readonly failing: Set<string>;
  stopping: boolean;
  /** The round of slow jobs that is under way. */
  slowRound: Promise<void> | null;
  clockEvent: ClockEvent;
  swept: Swept;
}

type Pace = 'slow' | 'each-minute';
const paceOf = (job: Job): Pace => (isSlow(job) ? 'slow' : 'each-minute');

/** @returns null where the time cannot be committed: then no job runs, because the clock may be wrong */
async function commitTime(rounds: Rounds, pace: Pace): Promise<number | null> {
  const { clockRule, onClock } = rounds;
  try {
    const commit = () => clockRule.commit();
    const { at, event, offMs } = await rounds.deadlines.wait(`${CLOCK_JOB} ${pace}`, MINUTE, commit);
    if (event !== rounds.clockEvent) onClock(event, offMs);
    rounds.clockEvent = event;
    return at;
  } catch (error) {
    rounds.complaints.note([CLOCK_JOB], [{ job: CLOCK_JOB, kid: null, error }]);
    return null;
  }
}

/**
 * Counts a job as due half a round early, because a timer is never exact. `every` counts rounds, of a minute
 * by default.
 */
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
    rounds.onRun?.(name, isLate ? 'late' : errors.length > 0 ? 'failed' : 'done');
    ranAt.set(name, startedAt);
    if (errors.length > 0) failing.add(name);
    else {
      failing.delete(name);
      doneAt.set(name, startedAt);
    }
  }
}

async function runDue(rounds: Rounds, pace: Pace): Promise<void> {
  const { database, clock, deadlines, deadlineOf, failing } = rounds;
  const until = await commitTime(rounds, pace);
  if (until === null) return;
  const startedAt = rounds.monotonic();
  const due = dueJobs(rounds, startedAt).filter((job) => paceOf(job) === pace);
  if (due.length === 0) return;
  const ran = due.map(({ name }) => name);
  const moment = { now: clock(), until, shouldContinue: () => !rounds.stopping };
  const options = { kids: () => listKids(database), wait: deadlines.wait, deadlineOf };
  const failures = [...(await runJobs(due, moment, options))];
  if (rounds.stopping) return;
  noteResults(rounds, ran, failures, startedAt);
  // The present time and not that of the start: while slow jobs ran, later rounds may have been recorded.
  const at = clock();
  // Slow jobs may end first, before a job of each minute could fail.
  const complete =
    failing.size === 0 && rounds.jobs.every((job) => isSlow(job) || rounds.ranAt.has(job.name));
  const isRetentionDone = ran.includes(RETENTION_JOB) && !failing.has(RETENTION_JOB);
  const round = { at, ran, failures: [...failures], complete, isRetentionDone };
  await deadlines
    .wait(`${RECORD_JOB} ${pace}`, MINUTE, () => recordRound(database, round))
    .catch((error: unknown) => failures.push({ job: RECORD_JOB, kid: null, error }));
  rounds.complaints.note([...ran, CLOCK_JOB, RECORD_JOB], failures);
  rounds.swept = {
    completeAt: complete ? isoTime(at) : rounds.swept.completeAt,
    retentionAt: isRetentionDone ? isoTime(at) : rounds.swept.retentionAt,
  };
}

async function runRound(rounds: Rounds): Promise<void> {
  rounds.slowRound ??= runDue(rounds, 'slow')
    .catch((error: unknown) => rounds.onFailure({ job: RECORD_JOB, kid: null, error }))
    .finally(() => {
      rounds.slowRound = null;
    });
  await runDue(rounds, 'each-minute');
}

const STALE = ['housekeeping'];

/** @returns why the node is degraded: some job was not done for long */
function degradedParts({ jobs, doneAt, monotonic, startedAt }: Rounds): readonly string[] {
  const now = monotonic();
  const isStale = (job: Job): boolean => now - (doneAt.get(job.name) ?? startedAt) > staleAfter(job);
  return jobs.some(isStale) ? STALE : [];
}

/** Runs the jobs until `stop`. */
export function startHousekeeping(options: HousekeepingOptions) {
  const { monotonic = () => performance.now(), interval = MINUTE, onFailure } = options;
  const rounds: Rounds = {
    ...options,
    monotonic,
    interval,
    deadlineOf: options.deadlineOf ?? usualDeadline,
    complaints: createComplaints(onFailure),
    deadlines: createDeadlines(setTimeout),
    startedAt: monotonic(),
    ranAt: new Map(),
    doneAt: new Map(),
    failing: new Set(),
    stopping: false,
    slowRound: null,
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
      await rounds.slowRound;
    },
    async stop() {
      rounds.stopping = true;
      const timer = setTimeout(rounds.deadlines.abandon, STOP_MS);
      await loop.stop();
      await rounds.slowRound;
      clearTimeout(timer);
    },
  };
}

/**
 * Runs retention alone, for every tenant, for `gpd retention run`; a failure for one does not stop the
 * others.
 */
export async function runRetention(
  database: Database,
  now: number,
  dryRun = false,
  macsOf: (kid: string) => EntryMacs | undefined = () => undefined,
  onStep?: OnStep,
) {
  const results: (RetentionCounts & { kid: string })[] = [];
  const job = {
    name: RETENTION_JOB,
    every: 0,
    each: async (kid: string): Promise<void> => {
      const counts = await retainTenant(database, kid, now, { dryRun, onStep, macs: macsOf(kid) });
      if (counts) results.push({ kid, ...counts });
    },
  };
  const failures = await runJobs([job], { now, until: now }, { kids: () => listKids(database) });
  if (!dryRun) {
    await recordRound(database, {
      at: now,
      ran: [RETENTION_JOB],
      failures,
      complete: false,
      isRetentionDone: failures.length === 0,
    });
  }
  return { results, failures };
}
