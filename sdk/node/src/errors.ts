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
  /** What to mend, in words that hold no value of the caller's. */
  readonly hint?: string;
}

export class ConsentError extends Error {
  override readonly name = 'ConsentError';
  readonly kind: ErrorKind;
  /** The server's error code, `closed`, why a proof fails, or the kind itself. */
  readonly code: string;
  readonly status: number | null;
  /** Names the server's log line. */
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

/** By status; every 4xx that is not named here is the caller's request, whatever is not HTTP's 4xx or 5xx an odd answer. */
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

/** True when a check may become a denial: what the caller has to mend is raised instead. */
export function isUndecided(error: unknown): error is ConsentError {
  if (!(error instanceof ConsentError)) return false;
  if (error.status === null) return error.kind !== 'config' && error.kind !== 'invalid-request';
  return !ALWAYS_RAISED.has(error.status);
}
