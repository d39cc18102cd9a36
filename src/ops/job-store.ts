import type { Database } from '../db/engine.ts';
import { LAST_RETENTION, LAST_SWEEP, writeMeta } from '../db/meta-store.ts';
import { type JobFailure, reasonOf } from '../lib/jobs.ts';

/** Stores which housekeeping jobs fail, on all nodes. `gpd doctor` reads it even when no server runs. */

interface StoredJobFailure extends Omit<JobFailure, 'error'> {
  /** Name and code of the error. */
  readonly reason: string;
  readonly since: number;
}

export interface Round {
  readonly at: number;
  /** Names of the jobs that ran for every tenant, with or without failures. */
  readonly ran: readonly string[];
  readonly failures: readonly JobFailure[];
  /** True if no job of this or an earlier round is failing. */
  readonly complete: boolean;
  /** True if retention succeeded for every tenant. */
  readonly isRetentionDone: boolean;
}

/** Stores each failing job with the time of its first failure; deletes those that succeeded on any node. */
export async function recordRound(database: Database, round: Round): Promise<void> {
  const { at, ran, failures } = round;
  const keyOf = (kid: string, job: string): string => `${job} ${kid}`;
  const failing = new Set(failures.map(({ kid, job }) => keyOf(kid ?? '', job)));
  await database.transaction(async (tx) => {
    const storedFailures = await tx('job_failures')
      .whereIn('job', ran)
      .select<Record<'kid' | 'job', string>[]>('kid', 'job');
    for (const { kid, job } of storedFailures) {
      if (!failing.has(keyOf(kid, job))) await tx('job_failures').where({ kid, job }).delete();
    }
    for (const { kid, job, error } of failures) {
      await tx('job_failures')
        .insert({ kid: kid ?? '', job, since: at, reason: reasonOf(error) })
        .onConflict(['kid', 'job'])
        .merge(['reason']);
    }
    if (round.complete) await writeMeta(tx, LAST_SWEEP, String(at));
    if (round.isRetentionDone) await writeMeta(tx, LAST_RETENTION, String(at));
  });
}

export async function readJobFailures(database: Database): Promise<readonly StoredJobFailure[]> {
  const failing = database.read('job_failures').orderBy(['since', 'kid', 'job']);
  const rows = await failing.select('job', 'kid', 'reason', 'since');
  return (rows as StoredJobFailure[]).map((row) => ({ ...row, kid: row.kid === '' ? null : row.kid }));
}
