import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import { runJobs } from '../lib/jobs.ts';
import type { EntryMacs } from '../log/entries.ts';
import { planRetention, type RetentionCounts, retain } from '../rights/retention/store.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { recordRound } from './job-store.ts';

export const RETENTION = 'retention';

export interface RetentionOptions {
  readonly dryRun?: boolean | undefined;
  /** False stops it between two steps. */
  readonly goesOn?: () => boolean;
  readonly macs?: EntryMacs | undefined;
}

/** What a tenant's retention takes away now, or would; null: the tenant is gone. */
export async function retainTenant(
  database: Database,
  kid: string,
  now: number,
  { dryRun = false, goesOn, macs }: RetentionOptions = {},
) {
  const tenant = await createTenantStore(database).get(kid);
  if (!tenant) return null;
  const rules = { kid, days: tenant.settings['retention.days'], now, macs };
  return dryRun ? planRetention(database, rules) : retain(database, rules, goesOn);
}

/** Retention of every tenant, now; if one fails, the others continue. */
export async function runRetention(
  database: Database,
  now: number,
  dryRun = false,
  macsOf: (kid: string) => EntryMacs | undefined = () => undefined,
) {
  const results: (RetentionCounts & { kid: string })[] = [];
  const job = {
    name: RETENTION,
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
      ran: [RETENTION],
      failures,
      complete: false,
      retained: failures.length === 0,
    });
  }
  return { results, failures };
}
