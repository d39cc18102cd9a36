import type { AuditAction, AuditEvent } from '../../audit/audit.ts';
import { rightsRef } from '../../audit/reference.ts';
import { writeAudit } from '../../audit/store.ts';
import { tell } from '../../consent/tell-service.ts';
import type { ConsentTenant } from '../../consent/tenant.ts';
import type { Database } from '../../db/db.ts';
import type { Actor } from '../../lib/act.ts';
import type { Clock } from '../../lib/clock.ts';
import { Refusal, TenantGone } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { lockHead } from '../../log/append-store.ts';
import { WEBHOOK_EVENTS, type WebhookEvent } from '../../schema/webhooks.ts';
import type { Contest } from './contest.ts';
import type { ContestTexts } from './contest-text.ts';
import { contestResponse } from './record.ts';
import { lockContest, updateContest } from './store.ts';

/** A change of a contest: it locks the record, and takes its audit row and its notices with it. */

export interface ContestDeps {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly contestTexts: ContestTexts;
}

export type Tx = Parameters<Parameters<Database['transaction']>[0]>[0];

export function tenantFor({ tenantOf }: ContestDeps, kid: string): ConsentTenant {
  const tenant = tenantOf(kid);
  if (!tenant) throw new TenantGone();
  return tenant;
}

/** A change within its transaction. */
export interface Changed {
  readonly tx: Tx;
  readonly contest: Contest;
  readonly now: number;
}

/** An audit row, and a notice where an event has the name of the action. */
export const noted =
  (deps: ContestDeps, actor: Actor, action: AuditAction, more: AuditEvent['detail'] = {}) =>
  async (changed: Changed): Promise<void> => {
    const { tx, contest, now } = changed;
    const { kid, contestId, status, proposal } = contest;
    const outcome = contest.outcome ?? (action === 'contest.proposed' ? (proposal?.outcome ?? null) : null);
    const object = rightsRef(tenantFor(deps, kid).rightsKey, 'contest', contestId);
    const detail = { status, outcome, class: contest.class, ...more };
    await writeAudit(tx, { kid, at: now, actor, action, object, detail });
    const event = WEBHOOK_EVENTS.find((name) => name === action);
    if (event) await tellOf(deps, changed, event);
  };

export function tellOf(deps: ContestDeps, { tx, contest, now }: Changed, event: WebhookEvent): Promise<void> {
  const tenant = tenantFor(deps, contest.kid);
  const principal = rightsRef(tenant.rightsKey, 'request', contest.requestId);
  const { contestId: number, email } = contest;
  const data = contestResponse(contest);
  return tell(tx, tenant, { event, data, number, hasEmail: email !== null, principal, at: now });
}

export interface Step {
  /** How a contest of another tenant is refused; undefined: as for staff. */
  readonly missing?: 'no-such-contest' | 'no-such-case';
  readonly change: (contest: Contest, now: number) => Contest;
  /** It writes to the log, whose head is locked before any contest, as an erasure does. */
  readonly locksHead?: boolean;
  readonly after: (changed: Changed) => Promise<void>;
}

/** Locks, changes, writes. What changes nothing is answered as it is. */
export async function change(
  { database, contestTexts, clock }: ContestDeps,
  kid: string,
  contestId: string,
  step: Step,
): Promise<Contest> {
  const now = clock();
  return database.transaction(async (tx) => {
    if (step.locksHead) await lockHead(tx, kid);
    const contest = await lockContest(tx, contestTexts, contestId);
    if (!contest) throw new Refusal(step.missing ?? 'no-such-contest');
    if (contest.kid !== kid) throw new Refusal(step.missing ?? 'cross-tenant-denied');
    const next = step.change(contest, now);
    if (next === contest) return contest;
    await updateContest(tx, contestTexts, next);
    await step.after({ tx, contest: next, now });
    return next;
  });
}
