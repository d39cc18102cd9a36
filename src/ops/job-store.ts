import type { Database } from '../db/engine.ts';
import { LAST_RETENTION, LAST_SWEEP, writeMeta } from '../db/meta-store.ts';
import { type JobFailure, reasonOf } from '../lib/jobs.ts';

/** How the housekeeping of all nodes together is doing: `gpd doctor` reads it, whether a server runs or not. */

interface StoredJobFailure extends Omit<JobFailure, 'error'> {
  /** Name and code of the error. */
  readonly reason: string;
  readonly since: number;
}

export interface Round {
  readonly at: number;
  /** Names of the jobs that ran to their end, for every tenant. */
  readonly ran: readonly string[];
  readonly failures: readonly JobFailure[];
  /** No job is failing, those of earlier rounds included. */
  readonly complete: boolean;
  /** Retention ran for every tenant. */
  readonly retained: boolean;
}

/** Notes what fails and since when; a job that ran without failing is forgotten, on whichever node it did. */
export async function recordRound(database: Database, round: Round): Promise<void> {
  const { at, ran, failures } = round;
  const keyOf = (kid: string, job: string): string => `${job} ${kid}`;
  const failing = new Set(failures.map(({ kid, job }) => keyOf(kid ?? '', job)));
  await database.transaction(async (tx) => {
    const known = await tx('job_failures')
      .whereIn('job', ran)
      .select<Record<'kid' | 'job', string>[]>('kid', 'job');
    for (const { kid, job } of known) {
      if (!failing.has(keyOf(kid, job))) await tx('job_failures').where({ kid, job }).delete();
    }
    for (const { kid, job, error } of failures) {
      await tx('job_failures')
        .insert({ kid: kid ?? '', job, since: at, reason: reasonOf(error) })
        .onConflict(['kid', 'job'])
        .merge(['reason']);
    }
    if (round.complete) await writeMeta(tx, LAST_SWEEP, String(at));
    if (round.retained) await writeMeta(tx, LAST_RETENTION, String(at));
  });
}

export async function readJobFailures(database: Database): Promise<readonly StoredJobFailure[]> {
  const failing = database.read('job_failures').orderBy(['since', 'kid', 'job']);
  const rows = await failing.select('job', 'kid', 'reason', 'since');
  return (rows as StoredJobFailure[]).map((row) => ({ ...row, kid: row.kid === '' ? null : row.kid }));
}
