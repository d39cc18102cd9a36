import { verifyLog } from '../../src/consent/verify-service.ts';
import type { Database } from '../../src/db/engine.ts';
import type { ProblemCode } from '../../src/log/entries.ts';

const OF_SEALS: readonly ProblemCode[] = ['seal-missing', 'seal-changed', 'rows-missing', 'rows-added'];

/** What verify says of a tenant's sealed hours, in words. */
export async function sealProblems(database: Database, kid: string): Promise<string[]> {
  const problems = (await verifyLog(database, kid))?.problems ?? [];
  return problems.filter(({ code }) => OF_SEALS.includes(code)).map(({ what }) => what);
}
