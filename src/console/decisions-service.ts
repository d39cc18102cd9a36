import { recordAudit, rightsRef } from '../audit/audit-store.ts';
import { findDecision, supersededBy } from '../ingest/decisions-store.ts';
import { findContest } from '../rights/contests/store.ts';
import { describeDecision } from '../rights/dsar/service.ts';
import { actorOf, type Context, requireTenant, type Staff } from './context-service.ts';
import { type DecisionQuery, decisionsPage } from './decisions-store.ts';

/**
 * Lists decisions and opens one, for reviewers of its tenant. Opening one is in the audit log; if that cannot
 * be written, nothing is shown.
 */

export const listDecisions = ({ database }: Context, { kid }: Staff, query: DecisionQuery) =>
  decisionsPage(database, kid, query);

/** @returns null if the tenant has no such decision */
export async function openDecision(context: Context, staff: Staff, requestId: string) {
  const { database, contestTexts, clock } = context;
  const { kid } = staff;
  const tenant = requireTenant(context, staff);
  const stored = await findDecision(database, kid, requestId);
  if (!stored) return null;
  await recordAudit(database, {
    kid,
    at: clock(),
    actor: actorOf(staff),
    action: 'decision.read',
    object: rightsRef(tenant.rightsKey, 'request', requestId),
    detail: {},
  });
  const [contest, laterId] = await Promise.all([
    findContest(database.read, contestTexts, { kid, requestId, kind: 'contest' }),
    supersededBy(database, kid, requestId),
  ]);
  const { verdict, overturned } = stored;
  return {
    decision: describeDecision(
      { requestId, verdict, summary: null, supersededBy: laterId },
      tenant,
      contest ?? undefined,
    ),
    incomplete: verdict.incomplete,
    monitor: verdict.monitor,
    overturned,
  };
}
