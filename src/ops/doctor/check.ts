import { Unavailable } from '../../lib/errors.ts';
import { reasonOf } from '../../lib/jobs.ts';
import type { DoctorContext, TenantRows } from './context-service.ts';
import { about, type Finding, type Findings, fail, perTenant, Skipped } from './finding.ts';

/** The type of a check of `gpd doctor`, and the helper for checks that look at every tenant. */

export interface Check {
  /** `area.what`, which is stable: monitoring may name it. */
  readonly id: string;
  /** A sentence that is true if the check passes, and is shown unless `run` yields another. */
  readonly title: string;
  /** @throws {Skipped} where it cannot check; earlier findings remain */
  readonly run: (context: DoctorContext) => Findings;
}

/** @returns false or '' for a good tenant; a text describes the fault */
type IsBad = (tenant: TenantRows) => boolean | string | Promise<boolean | string>;

/**
 * Yields the complaint with the names of all bad tenants. A tenant whose rows cannot be read does not hide
 * the others.
 */
export async function* ofTenants({ tenants }: DoctorContext, complaint: Finding, isBad: IsBad) {
  const { readable } = await tenants();
  if (readable.length === 0) throw new Skipped('there are no tenants');
  const [names, unread]: [string[], string[]] = [[], []];
  for (const tenant of readable) {
    try {
      const bad = await isBad(tenant);
      if (bad !== false && bad !== '') names.push(bad === true ? tenant.kid : `${tenant.kid} ${bad}`);
    } catch (error) {
      if (error instanceof Skipped || error instanceof Unavailable) throw error;
      unread.push(`${tenant.kid} (${reasonOf(error)})`);
    }
  }
  const kids = names.map((name) => name.split(' ', 1)[0] ?? '');
  const { remedy } = complaint;
  yield* about(names, remedy === undefined ? complaint : { ...complaint, remedy: perTenant(remedy, kids) });
  yield* about(unread, fail('what this check reads is damaged', 'Restore a backup.'));
}
