import { TenantGone, Unavailable } from './errors.ts';

/** Runs what time makes due. A failure is its job's own, and its tenant's own: everything else runs. */

export interface Moment {
  readonly now: number;
  /** The latest time for what cannot be taken back: see `db/clock-rule-store.ts`. */
  readonly until: number;
}

export type Job = {
  /** Stable: log lines and `gpd doctor` name it. */
  readonly name: string;
  /** Milliseconds from one run to the next. */
  readonly every: number;
} & (
  | { readonly run: (moment: Moment) => Promise<unknown> }
  /** Once per tenant, by kid. */
  | { readonly each: (kid: string, moment: Moment) => Promise<unknown> }
  /** Of all tenants together. @returns what failed, after everything else was done */
  | { readonly together: (moment: Moment) => Promise<readonly Fault[]> }
);

export interface Fault {
  /** Null: it is about no single tenant. */
  readonly kid: string | null;
  readonly error: unknown;
}

export interface Failure extends Fault {
  readonly job: string;
}

export interface JobOptions {
  readonly kids: () => Promise<readonly string[]>;
  /** True: the process is stopping, and what did not begin is left for the next start. */
  readonly stopping?: () => boolean;
}

/** Runs every job once, in order, and returns what failed. */
export async function runJobs(
  jobs: readonly Job[],
  moment: Moment,
  { kids, stopping = () => false }: JobOptions,
): Promise<readonly Failure[]> {
  const failures: Failure[] = [];
  const failed = (job: string, { kid, error }: Fault): void => {
    // Removed since the list was read: nothing of it is due any more.
    if (!(error instanceof TenantGone)) failures.push({ job, kid, error });
  };
  const attempt = async (job: string, kid: string | null, work: () => Promise<unknown>): Promise<void> => {
    if (stopping()) return;
    try {
      await work();
    } catch (error) {
      failed(job, { kid, error });
    }
  };
  for (const job of jobs) {
    await attempt(job.name, null, async () => {
      if ('run' in job) await job.run(moment);
      else if ('together' in job) for (const fault of await job.together(moment)) failed(job.name, fault);
      else for (const kid of await kids()) await attempt(job.name, kid, () => job.each(kid, moment));
    });
  }
  return failures;
}

/** An error's name and code. Its message may quote what was bound, and stays out of logs and tables. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const { cause } = error;
  const { code } = (error instanceof Unavailable && cause instanceof Error ? cause : error) as {
    code?: unknown;
  };
  return typeof code === 'string' ? `${error.name} ${code}` : error.name;
}

/** What tells one cause from another: the error, and where it was thrown. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof Unavailable) return reasonOf(error);
  return `${reasonOf(error)} ${/^ +at .*$/m.exec(error.stack ?? '')?.[0] ?? ''}`;
}

/** Complains once per cause: again only when it changed, or after it recovered. */
export type Complaints = ReturnType<typeof makeComplaints>;

/** A database that cannot be reached fails every job: one cause, told once. */
const DATABASE = 'database';

export function makeComplaints(onFailure: (failure: Failure) => void) {
  const told = new Map<string, string>();
  let failing: readonly Failure[] = [];
  const subjectOf = ({ job, kid, error }: Failure): string =>
    error instanceof Unavailable ? DATABASE : `${job} ${kid ?? ''}`;
  return {
    /** @param ran names of the jobs that were tried */
    note(ran: readonly string[], failures: readonly Failure[]) {
      failing = [...failing.filter(({ job }) => !ran.includes(job)), ...failures];
      const tried = new Set<string>();
      for (const failure of failures) {
        const subject = subjectOf(failure);
        if (tried.has(subject)) continue;
        tried.add(subject);
        const cause = causeOf(failure.error);
        if (told.get(subject) !== cause) onFailure(failure);
        told.set(subject, cause);
      }
      const still = new Set(failing.map(subjectOf));
      for (const subject of told.keys()) if (!still.has(subject)) told.delete(subject);
    },
  };
}

/** The one polling loop: runs a task every interval, never twice at once, and complains once per failing spell. */

export interface EveryOptions {
  readonly ms: number;
  /** `setInterval`, or a test's own. */
  readonly timer: (tick: () => void, ms: number) => { close(): unknown; unref(): unknown };
  /** Called for the first failure, and not again until the task has succeeded. */
  readonly onFault: (error: unknown) => void;
  /** Called for the first success after a failure. */
  readonly onRecovered?: (() => void) | undefined;
}

export type Every = ReturnType<typeof every>;

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
  function soon(): Promise<void> {
    next ??= last
      .catch(() => {})
      .then(() => {
        last = run();
        return last;
      });
    return next;
  }
  const ticking = timer(() => {
    // A run that hangs is waited for, not joined by more.
    if (!running && next === null) soon().catch(() => {});
  }, ms);
  ticking.unref();
  return {
    /** A run that begins after this call, and after one under way; callers at one time share it. @throws what the task throws */
    soon,
    /** Resolves when nothing runs any more. */
    stop: async () => {
      ticking.close();
      await Promise.allSettled([next]);
      await Promise.allSettled([last]);
    },
  };
}
