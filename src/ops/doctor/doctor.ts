import { readFileSync } from 'node:fs';
import type { Checks, Finding, Status } from './check.ts';
import { DATABASE_CHECKS } from './database-checks.ts';
import type { Facts } from './gather.ts';
import { HOST_CHECKS } from './host-checks.ts';
import { NETWORK_CHECKS } from './network-checks.ts';
import { TENANT_CHECKS } from './tenant-checks.ts';

/** What to do about a finding, by the check's id: `host.node  Install Node …`, a line each. */
const LINES = readFileSync(new URL('../../../views/doctor.en.txt', import.meta.url), 'utf8').trim();
const REMEDIES: ReadonlyMap<string, string> = new Map(
  LINES.split('\n').map((line) => line.split('  ', 2) as [id: string, remedy: string]),
);

/** `gpd doctor`: every check in the order in which an operator would look. */
export const CHECKS: Checks = {
  ...HOST_CHECKS,
  ...DATABASE_CHECKS,
  ...NETWORK_CHECKS,
  ...TENANT_CHECKS,
};

function withRemedy(id: string, found: Finding): Finding & { readonly id: string } {
  const remedy = found.remedy ?? REMEDIES.get(id);
  const isComplaint = found.status === 'warn' || found.status === 'fail';
  return { id, ...found, ...(isComplaint && remedy !== undefined && { remedy }) };
}

export type Report = ReturnType<typeof examine>;

export function examine(facts: Facts) {
  const checks = Object.entries(CHECKS).map(([id, assess]) => withRemedy(id, assess(facts)));
  const counts: Record<Status, number> = { pass: 0, warn: 0, fail: 0, skipped: 0 };
  for (const { status } of checks) counts[status] += 1;
  return { ok: counts.fail === 0, counts, checks };
}
