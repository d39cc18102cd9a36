import { iso, isoTime } from '../../lib/clock.ts';
import type { ContestResponse } from '../../schema/rights.ts';
import type { Contest } from './contest.ts';

/** The first date, and the one that counts instead. */
export const dueDates = ({ dueAt, extendedFrom, extensionReason }: Contest) => ({
  dueAt: isoTime(extendedFrom ?? dueAt),
  extendedTo: extendedFrom === null ? null : isoTime(dueAt),
  extensionReason,
});

/** The record as the subject and a reviewer see it. */
export function contestResponse(contest: Contest): ContestResponse {
  const { contestId, requestId, status, outcome, statement, version, question, reason, resolvedBy } = contest;
  const proposal = status === 'open' ? contest.proposal : null;
  return {
    contestId,
    requestId,
    status,
    outcome,
    statement,
    filedAt: isoTime(contest.filedAt),
    ...dueDates(contest),
    version,
    restricted: status === 'open',
    question,
    reason,
    resolvedAt: iso(contest.resolvedAt),
    resolvedBy,
    proposed: proposal && { outcome: proposal.outcome, by: proposal.by, at: isoTime(proposal.at) },
  };
}

export const ownContest = (contest: Contest) => ({
  ...contestResponse(contest),
  answer: contest.answer,
});

/** @returns the reasons of everyone who decided, the first reviewer first; a proposal of another outcome decided nothing */
export function reasonsOf({ status, outcome, reason, proposal }: Contest): string[] {
  if (status === 'open') return [];
  return [proposal?.outcome === outcome ? proposal.reason : null, reason].filter((text) => text !== null);
}

/** All that a person wrote and was asked, for an access request. */
export const heldContest = (contest: Contest) => ({
  ...ownContest(contest),
  earlier: contest.earlier,
  email: contest.email,
  reasons: reasonsOf(contest),
});

/** The review queue: mine, then what nobody holds, then what others hold; each by due date. */
export const QUEUE_GROUPS = ['mine', 'free', 'held'] as const;
export type QueueGroup = (typeof QUEUE_GROUPS)[number];

export interface QueueFilter {
  readonly class?: string | undefined;
  /** Filed before this moment. */
  readonly filedBefore?: number | undefined;
  readonly dueBefore?: number | undefined;
}

/** Keyset: what comes after this row. */
export interface QueueCursor {
  readonly group: QueueGroup;
  readonly at: number;
  readonly contestId: string;
}

export interface QueueQuery {
  readonly filter: QueueFilter;
  readonly after: QueueCursor | null;
  readonly limit: number;
}

export interface QueueRow {
  readonly group: QueueGroup;
  readonly contest: Contest;
}
