import type { IncomingMessage } from 'node:http';
import type { ConsoleSession, StaffRole } from '../auth/console-session.ts';
import type { LoginBegun, Switching } from '../auth/ports.ts';
import type { Random } from '../lib/random.ts';

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
  readonly begin: (switching: Switching | null) => Promise<LoginBegun & { readonly url: string }>;
  /** @throws {LoginRefused}, {Unavailable} */
  readonly finish: (callback: URL, begun: LoginBegun) => Promise<SignIn>;
  /** Where the browser signs out at the provider too; null: nowhere. */
  readonly leave: (session: ConsoleSession) => Promise<string | null>;
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

export interface Draft {
  readonly kind: 'resolve' | 'ask';
  readonly outcome: string | null;
  readonly text: string;
}

export interface DraftPort {
  /** An empty text takes away what was kept. @returns whether it is kept: not of a contest that is not there */
  save(by: Pick<Staff, 'kid' | 'ref'>, draft: Draft & { readonly contestId: string }): Promise<boolean>;
  of(staff: Staff, contestId: string): Promise<readonly Draft[]>;
  drop(staff: Staff, contestId: string, kinds: readonly Draft['kind'][]): Promise<void>;
}

/** Helpers of the http layer, handed in: siblings do not import each other. */
export interface HttpPort {
  readBody(request: IncomingMessage, limit: number): Promise<Buffer | null>;
  cookieValues(header: string | undefined, name: string): string[];
  cookieNames(header: string | undefined): string[];
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
