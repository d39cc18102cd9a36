import { PassThrough, type Writable } from 'node:stream';
import { tell } from '../consent/tell-service.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { type Clock, isoTime, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';
import { every } from '../lib/every.ts';
import { sha256 } from '../lib/hash.ts';
import type { Random } from '../lib/random.ts';
import {
  beatJob,
  deleteJob,
  endJob,
  findJob,
  insertJob,
  JOB_MS,
  type StoredJob,
} from '../rights/job-store.ts';
import { type ExportKeys, JobGone, openExport, sealExport } from './export-parts-service.ts';
import type { Staff } from './staff.ts';

/**
 * Work that takes longer than a page may. One process works at it; its state and what it wrote are in the database, where
 * every node finds them, until 15 minutes after it is done or until an erasure of somebody in it.
 */

export type Report = (done: number, total?: number) => void;

export interface ExportFile {
  readonly name: string;
  readonly type: string;
  readonly write: (output: Writable, signal: AbortSignal, report: Report) => Promise<unknown>;
}

/** A tenant's jobs at a time: each reads a whole trail or a whole log. */
const MAX_RUNNING = 3;
const BEAT_MS = SECOND;
/** A job without a heartbeat for this long is abandoned. */
const SILENT_MS = 30 * SECOND;

/** The page looks again until it is done. */
export interface JobView {
  readonly id: string;
  readonly kind: 'export' | 'verify';
  readonly state: 'running' | 'done' | 'failed';
  readonly done: number;
  readonly total: number;
  readonly startedAt: number;
  /** Of an export that is done. */
  readonly file: { readonly name: string; readonly type: string; readonly bytes: number } | null;
  readonly result: unknown;
}

interface Context {
  readonly database: Database;
  readonly keys: ExportKeys;
  readonly random: Random;
  readonly clock: Clock;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly onJobFault: (error: unknown) => void;
  /** What this process works at, by hash. */
  readonly working: Map<string, { readonly abort: AbortController; readonly ended: Promise<void> }>;
}

interface Progress {
  done: number;
  total: number;
}

type Task = (progress: Progress, signal: AbortSignal) => Promise<unknown>;
/** With the end of a job that is done. */
type Told = Parameters<typeof endJob>[3];

const hashOf = (id: string): string => sha256(id).toString('hex');

/** Beats until `abort`; one beat that finds the job gone stops the work. */
function keepBeating(
  { database, clock }: Context,
  hash: string,
  progress: Progress,
  abort: AbortController,
): void {
  const beat = async (): Promise<void> => {
    if (!(await beatJob(database, hash, { ...progress, at: clock() }))) abort.abort(new JobGone());
  };
  // The next one may succeed; readers wait longer than one.
  const beats = every(beat, { ms: BEAT_MS, timer: setInterval, onFault: () => {} });
  abort.signal.addEventListener('abort', () => void beats.stop(), { once: true });
}

function work(context: Context, id: string, task: Task, told?: Told): void {
  const { database, clock, onJobFault, working } = context;
  const hash = hashOf(id);
  const progress: Progress = { done: 0, total: 0 };
  const abort = new AbortController();
  keepBeating(context, hash, progress, abort);
  const ended = task(progress, abort.signal)
    .then(
      (result) => ({ state: 'done' as const, result: JSON.stringify(result ?? null) }),
      (error: unknown) => {
        if (!(error instanceof JobGone) && !abort.signal.aborted) onJobFault(error);
        return { state: 'failed' as const, result: null };
      },
    )
    .then((end) => endJob(database, hash, { ...progress, ...end, at: clock() }, told))
    .then(() => {}, onJobFault)
    .finally(() => {
      abort.abort();
      working.delete(hash);
    });
  working.set(hash, { abort, ended });
}

function reporter(progress: Progress): Report {
  return (done, total = progress.total) => {
    progress.done = done;
    progress.total = total;
  };
}

/** The job id decrypts the file; only its owner gets it. */
const ready =
  ({ tenantOf, clock }: Context, kid: string): Told =>
  async (tx) => {
    const tenant = tenantOf(kid);
    const at = clock();
    const data = { readyAt: isoTime(at), until: isoTime(at + JOB_MS) };
    if (tenant) await tell(tx, tenant, { event: 'export.ready', data, at });
  };

function workAtFile(context: Context, kid: string, id: string, { name, type, write }: ExportFile): void {
  const { database, keys, clock } = context;
  const task: Task = async (progress, signal) => {
    const output = new PassThrough();
    const beat = () => ({ ...progress, at: clock() });
    const [bytes] = await Promise.all([
      sealExport({ database, keys, id }, output, beat),
      write(output, signal, reporter(progress)),
    ]);
    return { name, type, bytes };
  };
  work(context, id, task, ready(context, kid));
}

function find({ database, clock }: Context, staff: Staff, id: string): Promise<StoredJob | null> {
  const by = { hash: hashOf(id), kid: staff.kid, actor: staff.ref };
  return findJob(database, by, clock() - JOB_MS);
}

async function get(context: Context, staff: Staff, id: string): Promise<JobView | null> {
  const job = await find(context, staff, id);
  if (!job) return null;
  const { kind, done, total, startedAt, beatAt } = job;
  const silent = job.state === 'running' && context.clock() - beatAt > SILENT_MS;
  const state = silent ? 'failed' : job.state;
  const result: unknown = job.result === null ? null : JSON.parse(job.result);
  const file = kind === 'export' && state === 'done' ? (result as JobView['file']) : null;
  return { id, kind: kind as JobView['kind'], state, done, total, startedAt, file, result };
}

async function* read(context: Context, staff: Staff, id: string): AsyncGenerator<Uint8Array> {
  const job = await find(context, staff, id);
  const { bytes } = (job?.result == null ? { bytes: 0 } : JSON.parse(job.result)) as { bytes: number };
  yield* openExport({ ...context, id }, bytes);
}

async function open(context: Context, staff: Staff, kind: JobView['kind'], subjects: readonly string[]) {
  const { database, random, clock } = context;
  const id = random(16).toString('hex');
  const hash = hashOf(id);
  const job = { hash, kid: staff.kid, actor: staff.ref, kind, subjects, at: clock() };
  if (!(await insertJob(database, job, MAX_RUNNING, clock() - SILENT_MS)))
    throw new Unavailable('too many jobs of this tenant are running', 10);
  return {
    id,
    /** There was nothing to do. */
    drop: (): Promise<void> => deleteJob(database, hash),
    run: (task: (report: Report) => Promise<unknown>): void =>
      work(context, id, (progress) => task(reporter(progress))),
    /** The same, with a file that the person who began it may fetch. */
    runFile: (file: ExportFile): void => workAtFile(context, staff.kid, id, file),
  };
}

export function makeJobs(deps: Omit<Context, 'working'>) {
  const context: Context = { ...deps, working: new Map() };
  return {
    /** One's own jobs alone, whichever node works at them. */
    get: (staff: Staff, id: string) => get(context, staff, id),
    /** The bytes of its file. @throws {Refusal} `not-found` when it was deleted meanwhile */
    read: (staff: Staff, id: string) => read(context, staff, id),
    /** @throws {Unavailable} when too many run already */
    open: (staff: Staff, kind: JobView['kind'], subjects: readonly string[]) =>
      open(context, staff, kind, subjects),
    /** Ends what this process works at. */
    async stop(): Promise<void> {
      const working = [...context.working.values()];
      for (const { abort } of working) abort.abort(new JobGone());
      await Promise.all(working.map(({ ended }) => ended));
    },
  };
}

export type Jobs = ReturnType<typeof makeJobs>;
