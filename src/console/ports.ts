import type { IncomingMessage } from 'node:http';
import type { ConsoleSession, StaffRole } from '../auth/console-session.ts';
import type { LoginBegun } from '../auth/ports.ts';
import type { Random } from '../lib/random.ts';
import type { Contest, Outcome } from '../rights/contest.ts';
import type { DsarDecision } from '../rights/dsar.ts';

/** What the console needs of the rest; `app/console/` hands it in. */

/** Staff at work, within the one tenant of their token. */
export interface Staff {
  readonly kid: string;
  readonly role: StaffRole;
  /** Keyed reference. */
  readonly ref: string;
  readonly label: string;
}

/** Who came back from the identity provider, or why nobody did. */
export type SignIn =
  | { readonly ok: true; readonly token: string; readonly expiresAt: number }
  | { readonly ok: false; readonly why: 'no-role' | 'no-tenant' | 'unknown-tenant' };

export interface LoginPort {
  /** Sentences that say what to set; empty when the console is configured. */
  readonly missing: () => readonly string[];
  /** @throws {Unavailable} */
  readonly begin: () => Promise<LoginBegun & { readonly url: string }>;
  /** @throws {LoginRefused}, {Unavailable} */
  readonly finish: (callback: URL, begun: LoginBegun) => Promise<SignIn>;
}

export interface SessionView {
  readonly id: string;
  readonly label: string;
  readonly role: StaffRole;
  readonly createdAt: number;
  readonly seenAt: number;
  readonly own: boolean;
}

export interface SessionPort {
  /** Whatever its age. */
  find(token: string): Promise<ConsoleSession | null>;
  touch(session: ConsoleSession): Promise<void>;
  end(session: ConsoleSession): Promise<void>;
  /** Of the tenant for a dpo, one's own for a reviewer. */
  list(staff: Staff, current: ConsoleSession): Promise<readonly SessionView[]>;
  /** @returns false when there is no such session within reach */
  revoke(staff: Staff, id: string): Promise<boolean>;
}

export interface DraftPort {
  save(
    session: ConsoleSession,
    draft: {
      readonly contestId: string;
      readonly kind: 'resolve' | 'ask';
      readonly outcome: string | null;
      readonly text: string;
    },
  ): Promise<boolean>;
}

/** Helpers of the http layer, handed in: siblings do not import each other. */
export interface HttpPort {
  readBody(request: IncomingMessage, limit: number): Promise<Buffer | null>;
  cookieValues(header: string | undefined, name: string): string[];
}

export interface ConsoleCore {
  /** The public origin; staff sign in there and nowhere else. */
  readonly origin: () => string;
  readonly loginKey: Uint8Array;
  readonly random: Random;
  readonly clock: () => number;
  readonly http: HttpPort;
  readonly login: LoginPort;
  readonly sessions: SessionPort;
  readonly drafts: DraftPort;
  readonly onFault: (requestId: string, error: unknown) => void;
}

export type QueueGroup = 'mine' | 'free' | 'held';

export interface QueueFilter {
  readonly class?: string | undefined;
  readonly filedBefore?: number | undefined;
  readonly dueBefore?: number | undefined;
}

export interface QueueCursor {
  readonly group: QueueGroup;
  readonly at: number;
  readonly contestId: string;
}

export interface QueueRow {
  readonly group: QueueGroup;
  readonly contest: Contest;
}

export interface QueueCounts {
  readonly open: number;
  readonly overdue: number;
  readonly mine: number;
  readonly held: number;
  readonly resolved: number;
}

export interface QueuePort {
  open(
    staff: Staff,
    filter: QueueFilter,
    after: QueueCursor | null,
    limit: number,
  ): Promise<readonly QueueRow[]>;
  resolved(
    staff: Staff,
    filter: QueueFilter,
    after: QueueCursor | null,
    limit: number,
  ): Promise<readonly Contest[]>;
  counts(staff: Staff): Promise<QueueCounts>;
  /** By the id of a contest or of a request. */
  find(staff: Staff, id: string): Promise<string | null>;
  workload(staff: Staff): Promise<
    readonly {
      readonly label: string;
      readonly actor: string;
      readonly claimed: number;
      readonly nextDueAt: number;
    }[]
  >;
  /** Counts above this are told as "more than". */
  readonly cap: number;
}

export interface TrailRow {
  readonly requestId: string;
  readonly decidedAt: number;
  readonly class: string;
  readonly suspectScore: number;
  readonly overridden: boolean;
}

export interface AuditLine {
  readonly seq: number;
  readonly at: number;
  readonly role: string;
  readonly actor: string;
  readonly action: string;
  readonly object: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface CaseView {
  readonly contest: Contest;
  /** Null: the decision was erased. */
  readonly decision: DsarDecision | null;
  readonly incomplete: boolean;
  readonly monitor: boolean;
  /** The latest decisions of the same device, this one among them. */
  readonly trail: readonly TrailRow[];
  /** At most COUNT_CAP + 1. */
  readonly trailTotal: number;
  readonly earlier: readonly Contest[];
  readonly audit: readonly AuditLine[];
  readonly fourEyes: boolean;
  readonly hasOverride: boolean;
  readonly webhooks: number;
  readonly drafts: readonly {
    readonly kind: string;
    readonly outcome: string | null;
    readonly text: string;
  }[];
}

export interface CasePort {
  /** Null: there is none in this tenant. */
  read(staff: Staff, contestId: string): Promise<CaseView | null>;
  claim(staff: Staff, contestId: string): Promise<void>;
  release(staff: Staff, contestId: string): Promise<void>;
  ask(staff: Staff, contestId: string, question: string): Promise<void>;
  /** @returns how it stands afterwards */
  resolve(
    staff: Staff,
    ruling: {
      readonly contestId: string;
      readonly outcome: Outcome;
      readonly reason: string;
      readonly version: number | null;
    },
  ): Promise<Contest>;
}
