import { Refusal } from '../../lib/errors.ts';
import type { ComplaintStatus } from '../../schema/rights.ts';
import { type Contest, type ResolverRole, refuseUnclaimable, withChange } from './contest.ts';
import { oneMonthAfter } from './period.ts';

/**
 * A complaint to the controller (Data Protection Act 2018, section 164A; contract-2 section 24):
 *   received → acknowledged → answered
 * It is a row of `contests` with another kind, so that claims, questions, erasure and retention are those of
 * a contest. It changes no decision.
 */

export function complaintStatus({ status, acknowledgedAt }: Contest): ComplaintStatus {
  if (status === 'resolved') return 'answered';
  return acknowledgedAt === null ? 'received' : 'acknowledged';
}

function requireComplaint({ kind }: Contest): void {
  if (kind !== 'complaint') throw new Refusal('no-such-contest');
}

/**
 * Tells the person that the complaint has arrived, once. No law names a date for the outcome, which is due
 * without undue delay: the queue reminds of it after a month.
 * @throws {Refusal}
 */
export function acknowledgeComplaint(contest: Contest, by: string, now: number): Contest {
  requireComplaint(contest);
  refuseUnclaimable(contest, by, now);
  if (contest.acknowledgedAt !== null) return contest;
  return withChange(contest, { acknowledgedAt: now, dueAt: oneMonthAfter(now), dueNotice: 0 });
}

/** The outcome of a complaint, in words for the person. */
export interface ComplaintAnswer {
  readonly text: string;
  readonly role: ResolverRole;
  readonly by: string;
  readonly label?: string | undefined;
}

/** Tells the outcome, which acknowledges the complaint too. @throws {Refusal} */
export function answerComplaint(contest: Contest, answer: ComplaintAnswer, now: number): Contest {
  requireComplaint(contest);
  const { text, role, by, label = null } = answer;
  refuseUnclaimable(contest, by, now);
  return withChange(contest, {
    status: 'resolved',
    reason: text,
    acknowledgedAt: contest.acknowledgedAt ?? now,
    resolvedAt: now,
    resolvedBy: { role, ref: by },
    resolvedLabel: label,
    claim: null,
    caseNetwork: null,
  });
}
