import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import { runJobs } from '../lib/jobs.ts';
import type { EntryMacs } from '../log/problems.ts';
import { deleteExpired, planRetention, type RetentionCounts } from '../rights/retention/store.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { recordRound } from './job-store.ts';

/** Deletes data whose retention period has ended: for the hourly job, and for `gpd retention run`. */

export const RETENTION_JOB = 'retention';

export interface RetentionOptions {
  readonly dryRun?: boolean | undefined;
  /** Asked between two steps; false stops the job. */
  readonly shouldContinue?: () => boolean;
  readonly macs?: EntryMacs | undefined;
}

/** @returns what was deleted, or with dryRun would be; null for a tenant that was removed */
export async function retainTenant(
  database: Database,
  kid: string,
  now: number,
  { dryRun = false, shouldContinue, macs }: RetentionOptions = {},
) {
  const tenant = await createTenantStore(database).get(kid);
  if (!tenant) return null;
  const rules = { kid, days: tenant.settings['retention.days'], now, macs };
  return dryRun ? planRetention(database, rules) : deleteExpired(database, rules, shouldContinue);
}

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
