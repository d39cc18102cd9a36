import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { Staff } from '../../console/ports.ts';
import type { JobPort, JobView } from '../../console/ports-dpo.ts';
import { type Clock, MINUTE } from '../../lib/clock.ts';
import { Unavailable } from '../../lib/errors.ts';

/**
 * Work that takes longer than a page may, in this process. What an export wrote lies in a directory of its own outside of the
 * data directory and goes after 15 minutes, or when the process ends.
 */

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

interface Job extends Mutable<JobView> {
  readonly kid: string;
  readonly owner: string;
  directory: string | null;
}

export type Report = (done: number, total?: number) => void;

export interface ExportFile {
  readonly name: string;
  readonly type: string;
  readonly write: (output: Writable) => Promise<unknown>;
}

const KEEP_MS = 15 * MINUTE;
/** A tenant's jobs at a time: each reads a whole trail or a whole log. */
const MAX_RUNNING = 3;

export interface Jobs extends JobPort {
  /** @throws {Unavailable} when too many run already */
  start(
    staff: Staff,
    kind: JobView['kind'],
    total: number,
    work: (report: Report) => Promise<unknown>,
  ): string;
  /** The same, with a file that its owner may fetch. */
  startFile(staff: Staff, total: number, work: (report: Report) => ExportFile): string;
  stop(): Promise<void>;
}

export function makeJobs(clock: Clock, onFault: (error: unknown) => void): Jobs {
  const jobs = new Map<string, Job>();

  async function drop(job: Job): Promise<void> {
    jobs.delete(job.id);
    if (job.directory !== null) await rm(job.directory, { recursive: true, force: true });
  }

  function sweep(): void {
    for (const job of jobs.values()) {
      if (job.state !== 'running' && clock() - job.startedAt > KEEP_MS) drop(job).catch(onFault);
    }
  }
  const timer = setInterval(sweep, MINUTE);
  timer.unref();

  function open(staff: Staff, kind: JobView['kind'], total: number): Job {
    sweep();
    const running = [...jobs.values()].filter((job) => job.kid === staff.kid && job.state === 'running');
    if (running.length >= MAX_RUNNING) throw new Unavailable('too many jobs of this tenant are running', 10);
    const job: Job = {
      id: randomBytes(16).toString('hex'),
      kind,
      state: 'running',
      done: 0,
      total,
      startedAt: clock(),
      file: null,
      result: null,
      kid: staff.kid,
      owner: staff.ref,
      directory: null,
    };
    jobs.set(job.id, job);
    return job;
  }

  function run(job: Job, work: (report: Report) => Promise<void>): string {
    const report: Report = (done, total = job.total) => {
      job.done = done;
      job.total = total;
    };
    work(report).then(
      () => {
        job.state = 'done';
      },
      (error: unknown) => {
        job.state = 'failed';
        onFault(error);
      },
    );
    return job.id;
  }

  return {
    get(staff, id) {
      sweep();
      const job = jobs.get(id);
      return job?.kid === staff.kid && job.owner === staff.ref ? job : null;
    },
    start(staff, kind, total, work) {
      const job = open(staff, kind, total);
      return run(job, async (report) => {
        job.result = await work(report);
      });
    },
    startFile(staff, total, work) {
      const job = open(staff, 'export', total);
      return run(job, async (report) => {
        const { name, type, write } = work(report);
        job.directory = await mkdtemp(join(tmpdir(), 'gpd-export-'));
        const path = join(job.directory, 'export');
        await write(createWriteStream(path, { mode: 0o600, flags: 'wx' }));
        job.file = { path, name, type, bytes: (await stat(path)).size };
      });
    },
    async stop() {
      clearInterval(timer);
      await Promise.all([...jobs.values()].map(drop));
    },
  };
}
