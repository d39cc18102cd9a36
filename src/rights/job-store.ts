import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { inChunks } from '../lib/chunks.ts';
import { MINUTE } from '../lib/clock.ts';
import { lockHead } from '../log/append-store.ts';

/** Jobs of the console, seen alike by every node. What an export wrote is sealed by its caller. */

/** What is done stays for so long after its last beat. */
export const JOB_MS = 15 * MINUTE;

export type JobState = 'running' | 'done' | 'failed';

export interface StoredJob {
  /** SHA-256 of its id. */
  readonly hash: string;
  readonly kid: string;
  /** Keyed reference of whoever began it, and may see it. */
  readonly actor: string;
  readonly kind: string;
  readonly state: JobState;
  readonly done: number;
  readonly total: number;
  readonly startedAt: number;
  readonly beatAt: number;
  /** JSON. */
  readonly result: string | null;
}

/** Parts go before their job, some at a time, so that the writer is not held for long. */
const PARTS_A_TIME = 16;

export interface NewJob extends Pick<StoredJob, 'hash' | 'kid' | 'actor' | 'kind'> {
  /** Devices, requests and keyed references of principals that the export is about. */
  readonly subjects: readonly string[];
  readonly at: number;
}

/**
 * Under the lock that erasures take: what begins to read after this is ended by every erasure that commits later.
 * @returns false when `most` jobs of the tenant run already, seen at work since `aliveSince`
 */
export function insertJob(
  database: Database,
  job: NewJob,
  most: number,
  aliveSince: number,
): Promise<boolean> {
  const { hash, kid, actor, kind, at } = job;
  return database.transaction(async (tx) => {
    await lockHead(tx, kid);
    const running = (await tx('console_jobs')
      .where({ kid, state: 'running' })
      .where('beat_at', '>=', aliveSince)
      .pluck('hash')) as string[];
    if (running.length >= most) return false;
    const row = { hash, kid, actor, kind, state: 'running', started_at: at, beat_at: at, result: null };
    await tx('console_jobs').insert({ ...row, done: 0, total: 0 });
    const subjects = [...new Set(job.subjects)].map((subject) => ({ hash, subject }));
    await inChunks(subjects, (some) => tx('console_job_subjects').insert(some));
    return true;
  });
}

/** One that lived since, of this person of this tenant. */
export async function findJob(
  database: Database,
  by: Pick<StoredJob, 'hash' | 'kid' | 'actor'>,
  since: number,
): Promise<StoredJob | null> {
  const { hash, kid, actor } = by;
  const row = await database
    .read('console_jobs')
    .where({ hash, kid, actor })
    .where('beat_at', '>', since)
    .first<StoredJob | undefined>('hash', 'kid', 'actor', 'kind', 'state', 'done', 'total', 'result', {
      startedAt: 'started_at',
      beatAt: 'beat_at',
    });
  return row ?? null;
}

interface Beat {
  readonly done: number;
  readonly total: number;
  readonly at: number;
}

function beatWithin(tx: Knex.Transaction, hash: string, { done, total, at }: Beat): Promise<number> {
  const running = tx('console_jobs').where({ hash, state: 'running' });
  return running.update({ done, total, beat_at: at }) as unknown as Promise<number>;
}

/** @returns false when the job is there no more: an erasure or its time has ended it */
export function beatJob(database: Database, hash: string, beat: Beat): Promise<boolean> {
  return database.transaction(async (tx) => (await beatWithin(tx, hash, beat)) === 1);
}

/** @returns false as `beatJob` does; nothing is written then */
export function appendPart(
  database: Database,
  hash: string,
  { part, sealed }: { readonly part: number; readonly sealed: Buffer },
  beat: Beat,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    if ((await beatWithin(tx, hash, beat)) !== 1) return false;
    await tx('console_job_parts').insert({ hash, part, sealed });
    return true;
  });
}

export async function readPart(database: Database, hash: string, part: number): Promise<Buffer | null> {
  const [sealed] = (await database
    .read('console_job_parts')
    .where({ hash, part })
    .pluck('sealed')) as Buffer[];
  return sealed ?? null;
}

/** @param told what is told with it, where it is done */
export function endJob(
  database: Database,
  hash: string,
  end: { readonly state: 'done' | 'failed'; readonly result: string | null } & Beat,
  told?: (tx: Knex.Transaction) => Promise<void>,
): Promise<boolean> {
  const { state, result } = end;
  return database.transaction(async (tx) => {
    if ((await beatWithin(tx, hash, end)) !== 1) return false;
    await tx('console_jobs').where({ hash }).update({ state, result });
    if (state === 'done') await told?.(tx);
    return true;
  });
}

/** With all that it wrote. */
export async function deleteJob(database: Database, hash: string): Promise<void> {
  for (;;) {
    const gone = await database.transaction(async (tx) => {
      const parts = (await tx('console_job_parts')
        .where({ hash })
        .orderBy('part')
        .limit(PARTS_A_TIME)
        .pluck('part')) as number[];
      if (parts.length > 0) await tx('console_job_parts').where({ hash }).whereIn('part', parts).delete();
      if (parts.length < PARTS_A_TIME) await tx('console_jobs').where({ hash }).delete();
      return parts.length;
    });
    if (gone < PARTS_A_TIME) return;
  }
}

/** Jobs whose last beat was before. */
export async function purgeJobs(database: Database, before: number): Promise<void> {
  const old = (await database.read('console_jobs').where('beat_at', '<=', before).pluck('hash')) as string[];
  for (const hash of old) await deleteJob(database, hash);
}

/** Within an erasure: an export about any of them goes with it, whether it is still written or waits to be fetched. */
export async function dropExportsOf(
  tx: Knex.Transaction,
  kid: string,
  erased: { has(subject: string): boolean },
): Promise<void> {
  const rows = (await tx('console_job_subjects')
    .join('console_jobs', 'console_jobs.hash', 'console_job_subjects.hash')
    .where('console_jobs.kid', kid)
    .select('console_job_subjects.hash as hash', 'console_job_subjects.subject as subject')) as {
    hash: string;
    subject: string;
  }[];
  const hashes = new Set(rows.filter(({ subject }) => erased.has(subject)).map(({ hash }) => hash));
  if (hashes.size > 0)
    await tx('console_jobs')
      .whereIn('hash', [...hashes])
      .delete();
}
