import type { IssueToken } from '../ingest/ports.ts';

/** A transparency token as it was presented. */
export interface Presented {
  readonly token: unknown;
  /** Values of the gp_session cookie: a sibling host may have added one. */
  readonly sessions: readonly string[];
  readonly origin: string | undefined;
}

/** The request and the session that the token was issued for. */
export type OpenedToken = Omit<Parameters<IssueToken>[0], 'origin' | 'now'>;
