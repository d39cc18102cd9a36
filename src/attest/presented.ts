/** A transparency token as it was presented. */
export interface Presented {
  readonly token: unknown;
  /** Values of the gp_session cookie: a sibling host may have added one. */
  readonly sessions: readonly string[];
  readonly origin: string | undefined;
  /** Values of the gp_bound cookie. */
  readonly bound: readonly string[];
}

/** The request and the session that the token was issued for. */
export interface OpenedToken {
  readonly kid: string;
  readonly requestId: string;
  readonly session: string;
  /** Whose consent was proven, where a tenant wants that. */
  readonly principalId?: string | undefined;
}
