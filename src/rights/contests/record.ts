import { AT_DOOR } from '../../ingest/verdict/verdict.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import type { ComplaintResponse, ContestResponse } from '../../schema/rights.ts';
import { complaintStatus } from './complaint.ts';
import type { CaseKind, Contest } from './contest.ts';
import { acknowledgeBy } from './period.ts';

/** The kind of a contest, where it is not about a visit. */
export const kindOf = ({ class: name }: Contest) => name === AT_DOOR && ({ kind: 'agent' } as const);

/** The original due date, and the extended one that replaces it. */
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
    ...kindOf(contest),
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

/**
 * @returns the reasons of everyone who decided, the first reviewer first; a proposal of another outcome
 * decided nothing
 */
export function reasonsOf({ status, outcome, reason, proposal }: Contest): string[] {
  if (status === 'open') return [];
  return [proposal?.outcome === outcome ? proposal.reason : null, reason].filter((text) => text !== null);
}

/** All texts of the person and questions to them, for an access request. */
export const heldContest = (contest: Contest) => ({
  ...ownContest(contest),
  earlier: contest.earlier,
  email: contest.email,
  language: contest.language,
  reasons: reasonsOf(contest),
});

/** A complaint as staff and webhooks see it. The outcome is in words, so that there is no second reason. */
export function complaintResponse(contest: Contest): ComplaintResponse {
  const { contestId, requestId, statement, question, version, resolvedBy } = contest;
  return {
    contestId,
    kind: 'complaint',
    requestId,
    status: complaintStatus(contest),
    statement,
    filedAt: isoTime(contest.filedAt),
    acknowledgeBy: isoTime(acknowledgeBy(contest.filedAt)),
    acknowledgedAt: iso(contest.acknowledgedAt),
    question,
    outcome: contest.reason,
    resolvedAt: iso(contest.resolvedAt),
    resolvedBy,
    version,
  };
}

/** The record of either kind. */
export const caseRecord = (contest: Contest): ContestResponse | ComplaintResponse =>
  contest.kind === 'complaint' ? complaintResponse(contest) : contestResponse(contest);

export const heldComplaint = (contest: Contest) => {
  const { answer, earlier, email, language } = contest;
  return { ...complaintResponse(contest), answer, earlier, email, language };
};

/** Lists of open cases: those that need this reviewer, and those in a state. */
export const QUEUE_LISTS = ['waiting', 'asked', 'answered', 'proposed'] as const;
export type QueueList = (typeof QUEUE_LISTS)[number];

/** Open cases are ordered by due or filing date; resolved ones always the latest first. */
export const QUEUE_ORDERS = ['due', 'oldest', 'newest'] as const;
export type QueueOrder = (typeof QUEUE_ORDERS)[number];

export interface QueueFilter {
  readonly kind?: CaseKind | undefined;
  readonly class?: string | undefined;
  /** Only contests filed before this time. */
  readonly filedBefore?: number | undefined;
  readonly dueFrom?: number | undefined;
  readonly dueBefore?: number | undefined;
}

/** A row, by the column of the order and its id. */
export interface QueueCursor {
  readonly at: number;
  readonly contestId: string;
}

export interface QueueQuery {
  readonly status: 'open' | 'resolved';
  readonly filter: QueueFilter;
  readonly list?: QueueList | undefined;
  /** Only cases that somebody whose name has these words holds now. */
  readonly holder?: string | undefined;
  readonly order: QueueOrder;
  /** The page begins after this row, or ends before it; null: the first page. */
  readonly cursor: QueueCursor | null;
  readonly isBackward: boolean;
  readonly limit: number;
}

/** @returns the position of a contest in a page of this order */
export function cursorOf(
  { status, order }: Pick<QueueQuery, 'status' | 'order'>,
  contest: Contest,
): QueueCursor {
  const { contestId, dueAt, filedAt, resolvedAt } = contest;
  if (status === 'resolved') return { at: resolvedAt ?? dueAt, contestId };
  return { at: order === 'due' ? dueAt : filedAt, contestId };
}
