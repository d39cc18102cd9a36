import type { Check, Finding, Status } from './check.ts';
import { CLOCK_CHECKS } from './clock-checks.ts';
import { DATABASE_CHECKS } from './database-checks.ts';
import type { Facts } from './facts.ts';
import { HOST_CHECKS } from './host-checks.ts';
import { NETWORK_CHECKS } from './network-checks.ts';
import { OUTSIDE_CHECKS } from './outside-checks.ts';
import { TENANT_CHECKS } from './tenant-checks.ts';

/** `gpd doctor`: every check in the order in which an operator would look. */
export const CHECKS: readonly Check<Facts>[] = [
  ...HOST_CHECKS,
  ...CLOCK_CHECKS,
  ...DATABASE_CHECKS,
  ...NETWORK_CHECKS,
  ...TENANT_CHECKS,
  ...OUTSIDE_CHECKS,
];

export interface Result extends Finding {
  readonly id: string;
}

export interface Report {
  readonly ok: boolean;
  readonly counts: Readonly<Record<Status, number>>;
  readonly checks: readonly Result[];
}

export function examine(facts: Facts): Report {
  const checks = CHECKS.map(({ id, judge }) => ({ id, ...judge(facts) }));
  const counts = { pass: 0, warn: 0, fail: 0, skipped: 0 };
  for (const { status } of checks) counts[status] += 1;
  return { ok: counts.fail === 0, counts, checks };
}
