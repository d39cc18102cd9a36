/** One error type, twelve kinds: the same strings in every language (SPEC.md section 5). */

export const ERROR_KINDS = [
  'config',
  'invalid-request',
  'unauthenticated',
  'permission-denied',
  'not-found',
  'conflict',
  'rate-limited',
  'server',
  'network',
  'timeout',
  'response',
  'proof',
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

export interface ErrorFacts {
  readonly code?: string;
  readonly status?: number | null;
  readonly requestId?: string | null;
  readonly retryAfterSeconds?: number | null;
  /** A remedy for the caller, without values of the call. */
  readonly hint?: string;
}

export class ConsentError extends Error {
  override readonly name = 'ConsentError';
  readonly kind: ErrorKind;
  /** The server's error code, `closed`, the reason why a proof fails, or else the kind. */
  readonly code: string;
  readonly status: number | null;
  /** Identifies the request in the server's log. */
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;

  constructor(method: string, kind: ErrorKind, facts: ErrorFacts = {}) {
    const { code = kind, status = null, requestId = null, retryAfterSeconds = null, hint } = facts;
    const parts = [code === kind ? kind : `${kind} (${code})`];
    if (status !== null) parts.push(`status ${status}`);
    super(`${method}: ${parts.join(', ')}${hint === undefined ? '' : `: ${hint}`}`);
    this.kind = kind;
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Kinds by status. Other 4xx mean an invalid request; a status that is neither 4xx nor 5xx means a malformed response. */
const KIND_OF: Readonly<Record<number, ErrorKind>> = {
  401: 'unauthenticated',
  403: 'permission-denied',
  404: 'not-found',
  408: 'timeout',
  409: 'conflict',
  429: 'rate-limited',
};

export function kindOfStatus(status: number): ErrorKind {
  const named = KIND_OF[status];
  if (named !== undefined) return named;
  if (status >= 500) return 'server';
  return status >= 400 ? 'invalid-request' : 'response';
}

const ALWAYS_RAISED = new Set([400, 401, 403, 422]);

/** True if a check may become a denial. Errors that the caller has to fix are raised instead. */
export function isUndecided(error: unknown): error is ConsentError {
  if (!(error instanceof ConsentError)) return false;
  if (error.status === null) return error.kind !== 'config' && error.kind !== 'invalid-request';
  return !ALWAYS_RAISED.has(error.status);
}
