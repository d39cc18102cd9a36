import { verifyLog } from '../../src/consent/verify-service.ts';
import type { Database } from '../../src/db/engine.ts';
import type { ProblemCode } from '../../src/log/problems.ts';

const SEAL_PROBLEMS: readonly ProblemCode[] = ['seal-missing', 'seal-changed', 'rows-missing', 'rows-added'];

/** @returns the problems that `verify` finds in the anchored hours of a tenant, as sentences */
export async function sealProblems(database: Database, kid: string): Promise<string[]> {
  const problems = (await verifyLog(database, kid, { trusted: undefined, now: Infinity }))?.problems ?? [];
  return problems.filter(({ code }) => SEAL_PROBLEMS.includes(code)).map((problem) => problem.what);
}
