import { driverError, errorCode } from '../../lib/errors.ts';
import { reasonOf } from '../../lib/jobs.ts';
import type { Check } from './check.ts';
import type { DoctorContext } from './context-service.ts';
import { DATABASE_CHECKS } from './database-checks.ts';
import { type Finding, fail, pass, Skipped, type Status } from './finding.ts';
import { HOST_CHECKS } from './host-checks.ts';
import { NETWORK_CHECKS } from './network-checks.ts';
import { TENANT_CHECKS } from './tenants-checks.ts';

/** `gpd doctor`: runs all checks, in the order in which an operator would look. */
export const CHECKS: readonly Check[] = [
  ...HOST_CHECKS,
  ...DATABASE_CHECKS,
  ...NETWORK_CHECKS,
  ...TENANT_CHECKS,
];

const ORDER: readonly Status[] = ['fail', 'warn', 'pass', 'skipped'];

/**
 * A check that throws does not hide the others. Its message is left out, because it may quote a URL with a
 * password.
 */
function findingOf(error: unknown): Finding {
  if (error instanceof Skipped) return { status: 'skipped', detail: error.message };
  // One damaged file is one finding: database.reachable or database.integrity has it.
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(errorCode(driverError(error))))
    return { status: 'skipped', detail: 'the database is damaged: see database.integrity' };
  return fail(
    `this check broke off (${reasonOf(error)})`,
    'Run gpd doctor again, and report it if it stays.',
  );
}

/** @returns all failures and warnings of the check, or else its first other finding */
async function runCheck({ id, title, run }: Check, context: DoctorContext) {
  const found: Finding[] = [];
  try {
    for await (const finding of run(context)) found.push(finding);
    found.push(pass(title));
  } catch (error) {
    found.push(findingOf(error));
  }
  const sorted = ORDER.flatMap((status) => found.filter((finding) => finding.status === status));
  const shown = sorted.filter(({ status }, i) => i === 0 || status === 'fail' || status === 'warn');
  return shown.map((finding) => ({ id, ...finding }));
}

export type Report = Awaited<ReturnType<typeof examine>>;

/** `checks` has an entry for each finding; `counts` counts each check once, by its worst finding. */
export async function examine(context: DoctorContext, checks = CHECKS) {
  const found = await Promise.all(checks.map((check) => runCheck(check, context)));
  const counts: Record<Status, number> = { pass: 0, warn: 0, fail: 0, skipped: 0 };
  for (const [worst] of found) if (worst) counts[worst.status] += 1;
  return { ok: counts.fail === 0, counts, checks: found.flat() };
}
