import { rightsRef } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { isoTime } from '../lib/clock.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { findDecision, supersededBy } from './decisions-store.ts';
import { verdictResponse } from './ingest.ts';
import { visitorIdOf } from './verdict/identity.ts';
import { reconcile } from './verdict/verdict.ts';
import { ruleText } from './verdict/verdict-words.ts';

/** The stored verdict as the backend reads it; the visitorId is computed again and never stored with it. */
export function createDecisionFinder(database: Database, tenantOf: (kid: string) => Tenant | undefined) {
  return async (kid: string, requestId: string) => {
    const tenant = tenantOf(kid);
    const stored = await findDecision(database, kid, requestId);
    if (!tenant || !stored) return null;
    const { restricted, overturned } = stored;
    const later = await supersededBy(database, kid, requestId);
    const verdict = overturned ? reconcile(stored.verdict) : stored.verdict;
    const { durable, epoch } = verdict;
    const visitorId = durable === null || epoch === null ? null : visitorIdOf(tenant, durable, epoch);
    return {
      ...verdictResponse(verdict, visitorId),
      rules: verdict.rules.map(({ id, weight }) => ({ id, weight, text: ruleText(id) })),
      policyVersion: verdict.policyVersion,
      decidedAt: isoTime(verdict.decidedAt),
      restricted,
      ...(verdict.door && { door: verdict.door }),
      ...(verdict.signature && { signature: verdict.signature }),
      ref: rightsRef(tenant.rightsKey, 'request', requestId),
      ...(verdict.context !== undefined && { context: verdict.context }),
      ...(later !== null && { supersededBy: later }),
    };
  };
}
