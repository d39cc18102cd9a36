import { Unavailable } from '../../lib/errors.ts';
import { reasonOf } from '../../lib/jobs.ts';
import type { DoctorContext, TenantRows } from './context.ts';
import { about, type Finding, type Findings, fail, Skipped } from './finding.ts';

export interface Check {
  /** `area.what`, which is stable: monitoring may name it. */
  readonly id: string;
  /** A sentence that is true where the check passes; it is shown where `run` finds nothing to say. */
  readonly title: string;
  /** @throws {Skipped} where it cannot look; what it found before stays */
  readonly run: (context: DoctorContext) => Findings;
}

/** Whether something is bad about a tenant; a text that is not empty says what. */
type IsBad = (tenant: TenantRows) => boolean | string | Promise<boolean | string>;

/** The complaint with the names of the tenants that it is about. One of whom something cannot be read hides no other. */
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
  yield* about(names, complaint);
  yield* about(unread, fail('what this check reads is damaged', 'Restore a backup.'));
}
