import { TenantGone, Unavailable } from './errors.ts';

/** Runs jobs that are due. A failure or a delay affects only its job and its tenant: everything else runs. */

export interface Moment {
  readonly now: number;
  /** The latest time for work that cannot be taken back: see `db/clock-rule-store.ts`. */
  readonly until: number;
  /**
   * False: the process is stopping. A long job asks between two steps, and a job that has not begun waits for
   * the next start.
   */
  readonly shouldContinue?: (() => boolean) | undefined;
}

export type Job = {
  /** Stable: log lines and `gpd doctor` print it. */
  readonly name: string;
  /** Milliseconds between two runs. */
  readonly every: number;
} & (
  | { readonly run: (moment: Moment) => Promise<unknown> }
  /** Runs once per tenant. */
  | { readonly each: (kid: string, moment: Moment) => Promise<unknown> }
  /** Runs for all tenants together. @returns the failures, after everything else was done */
  | { readonly together: (moment: Moment) => Promise<readonly JobFault[]> }
);

export interface JobFault {
  /** Null: it concerns no single tenant. */
  readonly kid: string | null;
  readonly error: unknown;
}

export interface JobFailure extends JobFault {
  readonly job: string;
}

/** A job did not end by its deadline. It may still end; until then it is not started again. */
export class JobLate extends Error {
  override readonly name = 'JobLate';
  readonly code = 'deadline';

  constructor() {
    super('the job did not end by its deadline');
  }
}

/** The metric counts runs by these. `late`: for at least one tenant the job did not end by its deadline. */
export const JOB_RESULTS = ['done', 'failed', 'late'] as const;
export type JobResult = (typeof JOB_RESULTS)[number];

export type Deadlines = ReturnType<typeof createDeadlines>;

/**
 * Stops waiting for work at its deadline. Work cannot be cancelled, so it continues in the background.
 * @param timer `setTimeout`, or a test's timer
 */
export function createDeadlines(timer: (tick: () => void, ms: number) => { close(): unknown }) {
  const running = new Set<string>();
  const waiting = new Set<() => void>();
  return {
    /** @param id distinguishes work that must not run twice at once @throws {JobLate} */
    wait: async <T>(id: string, ms: number, work: () => Promise<T>): Promise<T> => {
      if (running.has(id)) throw new JobLate();
      running.add(id);
      const run = (async () => work())().finally(() => running.delete(id));
      let giveUp = (): void => {};
      const timeout = new Promise<never>((_resolve, reject) => {
        giveUp = () => reject(new JobLate());
      });
      const deadline = timer(giveUp, ms);
      waiting.add(giveUp);
      try {
        return await Promise.race([run, timeout]);
      } finally {
        deadline.close();
        waiting.delete(giveUp);
      }
    },
    /** Stops waiting for everything that runs. */
    abandon: (): void => {
      for (const giveUp of waiting) giveUp();
    },
  };
}

const unlimited: Deadlines['wait'] = (_id, _ms, work) => work();

export interface JobOptions {
  readonly kids: () => Promise<readonly string[]>;
  /** Missing: a command waits for its job however long it takes. */
  readonly wait?: Deadlines['wait'];
  /** Milliseconds for a job, or for one tenant of it. */
  readonly deadlineOf?: (job: Job) => number;
}

/** Runs every job once, in order, and returns what failed. */
export async function runJobs(
  jobs: readonly Job[],
  moment: Moment,
  { kids, wait = unlimited, deadlineOf = () => 0 }: JobOptions,
): Promise<readonly JobFailure[]> {
  const failures: JobFailure[] = [];
  const failed = (job: string, { kid, error }: JobFault): void => {
    // The tenant was removed after the list was read, so nothing is due for it.
    if (!(error instanceof TenantGone)) failures.push({ job, kid, error });
  };
  const attempt = async <T>(job: Job, kid: string | null, work: () => Promise<T>): Promise<T | null> => {
    if (moment.shouldContinue?.() === false) return null;
    try {
      return await wait(`${job.name} ${kid ?? ''}`, deadlineOf(job), work);
    } catch (error) {
      failed(job.name, { kid, error });
      return null;
    }
  };
  for (const job of jobs) {
    if ('run' in job) await attempt(job, null, () => job.run(moment));
    else if ('together' in job) {
      const faults = await attempt(job, null, () => job.together(moment));
      for (const fault of faults ?? []) failed(job.name, fault);
    } else
      for (const kid of (await attempt(job, null, kids)) ?? [])
        await attempt(job, kid, () => job.each(kid, moment));
  }
  return failures;
}

/** The name and code of an error. Its message may quote bound values, so it stays out of logs and tables. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { cause } = error;
  const { code } = (error instanceof Unavailable && cause instanceof Error ? cause : error) as {
    code?: unknown;
  };
  return typeof code === 'string' ? `${error.name} ${code}` : error.name;
}

/** Distinguishes causes: by the error, and by the place where it was thrown. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof Unavailable) return reasonOf(error);
  return `${reasonOf(error)} ${/^ +at .*$/m.exec(error.stack ?? '')?.[0] ?? ''}`;
}

/** Reports each cause once, and again after it changed or recovered. */
export type Complaints = ReturnType<typeof createComplaints>;

/** An unreachable database fails every job: one cause, reported once. */
const DATABASE = 'database';

export function createComplaints(onFailure: (failure: JobFailure) => void) {
  const reported = new Map<string, string>();
  let failing: readonly JobFailure[] = [];
  const subjectOf = ({ job, kid, error }: JobFailure): string =>
    error instanceof Unavailable ? DATABASE : `${job} ${kid ?? ''}`;
  return {
    /** @param ran names of the jobs that were tried */
    note(ran: readonly string[], failures: readonly JobFailure[]) {
      failing = [...failing.filter(({ job }) => !ran.includes(job)), ...failures];
      const tried = new Set<string>();
      for (const failure of failures) {
        const subject = subjectOf(failure);
        if (tried.has(subject)) continue;
        tried.add(subject);
        const cause = causeOf(failure.error);
        if (reported.get(subject) !== cause) onFailure(failure);
        reported.set(subject, cause);
      }
      const still = new Set(failing.map(subjectOf));
      for (const subject of reported.keys()) if (!still.has(subject)) reported.delete(subject);
    },
  };
}

export interface EveryOptions {
  readonly ms: number;
  /** `setInterval`, or a test's timer. */
  readonly timer: (tick: () => void, ms: number) => { close(): unknown; unref(): unknown };
  /** Called for the first failure, and not again until the task has succeeded. */
  readonly onFault: (error: unknown) => void;
  /** Called for the first success after a failure. */
  readonly onRecovered?: (() => void) | undefined;
}

export type Every = ReturnType<typeof every>;

/**
 * The one polling loop: runs a task at each interval, never twice at once, and reports one failure until the
 * task succeeds again.
 */
export function every(task: () => Promise<void>, { ms, timer, onFault, onRecovered }: EveryOptions) {
  let running = false;
  let failing = false;
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;

  async function run(): Promise<void> {
    running = true;
    next = null;
    try {
      await task();
      if (failing) onRecovered?.();
      failing = false;
    } catch (error) {
      if (!failing) onFault(error);
      failing = true;
      throw error;
    } finally {
      running = false;
    }
  }
  function runNow(): Promise<void> {
    next ??= last
      .catch(() => {})
      .then(() => {
        last = run();
        return last;
      });
    return next;
  }
  const ticking = timer(() => {
    // A run that hangs is not joined by further ones.
    if (!running && next === null) runNow().catch(() => {});
  }, ms);
  ticking.unref();
  return {
    /**
     * Starts a run after this call and after a run in progress; simultaneous callers share it.
     * @throws {Error} the task's error
     */
    runNow,
    /** Resolves when nothing runs any longer. */
    stop: async () => {
      ticking.close();
      await Promise.allSettled([next]);
      await Promise.allSettled([last]);
    },
  };
}
