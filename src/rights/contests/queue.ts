import type { Contest } from './contest.ts';

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
