import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import { runJobs } from '../lib/jobs.ts';
import type { EntryMacs } from '../log/entries-store.ts';
import { RETENTION_JOB, type RetentionCounts, retainTenant } from '../rights/retention/store.ts';
import { recordRound } from './job-store.ts';

/** Runs retention for every tenant; a failure for one does not stop the others. */
export async function runRetention(
  database: Database,
  now: number,
  dryRun = false,
  macsOf: (kid: string) => EntryMacs | undefined = () => undefined,
) {
  const results: (RetentionCounts & { kid: string })[] = [];
  const job = {
    name: RETENTION_JOB,
    every: 0,
    each: async (kid: string): Promise<void> => {
      const counts = await retainTenant(database, kid, now, { dryRun, macs: macsOf(kid) });
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
