import { ALWAYS_RAISED, type DETAILS, type ERROR_KINDS, KIND_OF_STATUS, type KnownCode } from './wire.ts';

/** One error type, twelve kinds: the same strings in every language (SPEC.md section 5). */

export type ErrorKind = (typeof ERROR_KINDS)[number];
export type ErrorDetail = (typeof DETAILS)[number];

export interface ErrorFacts {
  readonly code?: string;
  readonly status?: number | null;
  readonly requestId?: string | null;
  readonly retryAfterSeconds?: number | null;
  readonly detail?: ErrorDetail | null;
  /** The system's code of the failure, such as ECONNREFUSED: its message could quote a header. */
  readonly cause?: string | undefined;
  /** A remedy for the caller, without values of the call. */
  readonly hint?: string;
}

export class ConsentError extends Error {
  override readonly name = 'ConsentError';
  readonly kind: ErrorKind;
  /** The server's error code, `closed`, the reason why a proof fails, or else the kind. */
  readonly code: KnownCode | (string & {});
  readonly status: number | null;
  /** Identifies the request in the server's log. */
  readonly requestId: string | null;
  readonly retryAfterSeconds: number | null;
  /** Why there is no answer, or none of gpd; null if the kind says it all. */
  readonly detail: ErrorDetail | null;

  constructor(method: string, kind: ErrorKind, facts: ErrorFacts = {}) {
    const { code = kind, status = null, requestId = null, retryAfterSeconds = null, hint } = facts;
    const { detail = null, cause } = facts;
    const parts = [code === kind ? kind : `${kind} (${code})`];
    if (status !== null) parts.push(`status ${status}`);
    if (detail !== null) parts.push(detail);
    const text = `${method}: ${parts.join(', ')}${hint === undefined ? '' : `: ${hint}`}`;
    super(text, cause === undefined ? {} : { cause: new Error(cause) });
    this.kind = kind;
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
    this.detail = detail;
  }
}

/** Other 4xx mean an invalid request; a status that is neither 4xx nor 5xx means a malformed response. */
export function kindOfStatus(status: number): ErrorKind {
  const named = (KIND_OF_STATUS as Readonly<Record<number, ErrorKind>>)[status];
  if (named !== undefined) return named;
  if (status >= 500) return 'server';
  return status >= 400 ? 'invalid-request' : 'response';
}

/** True if a check may become a denial. Errors that the caller has to fix are raised instead. */
export function isUndecided(error: unknown): error is ConsentError {
  if (!(error instanceof ConsentError)) return false;
  if (error.status === null) return error.kind !== 'config' && error.kind !== 'invalid-request';
  return !ALWAYS_RAISED.has(error.status) && !(error.status >= 300 && error.status < 400);
}
