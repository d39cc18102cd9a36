/**
 * The one closed table of refusals outside the ingest core (contract section 1). `docs/errors.md` is
 * generated from it. A message helps the caller fix the call; it never echoes a secret, a token, a raw signal
 * or another tenant's existence.
 */
export const ERRORS = {
  'malformed-sealed-bundle': [
    400,
    'The body is not a SealedBundle: one JSON object with kid, iv, ct and optionally epk.',
  ],
  'invalid-json': [400, 'The body is not valid JSON in UTF-8.'],
  'invalid-request': [400, 'The request does not have the shape this route expects.'],
  'missing-kid': [400, 'The query lacks the tenant: add ?kid=KID.'],
  'attestation-failed': [
    400,
    'The answer did not prove the key of a device; ask for a new challenge and try again.',
  ],
  unauthenticated: [401, 'A valid credential is needed for this route.'],
  'subject-not-identified': [401, 'The token names no subject that this server knows how to identify.'],
  'subject-only': [403, 'Only the data subject may do this.'],
  'not-your-decision': [403, 'This decision belongs to somebody else.'],
  'reviewer-only': [403, 'Only a reviewer or a dpo may do this.'],
  'cross-tenant-denied': [403, 'Your role is bound to another tenant.'],
  'reviewer-tenant-unbound': [403, 'Your token names no tenant; ask for one with the tenant claim.'],
  'not-your-data': [403, 'You may act on your own data only.'],
  'staff-export-elsewhere': [
    403,
    'Staff export data with `gpd dsar export` or in the console, where it is audited.',
  ],
  'self-review-denied': [403, 'You cannot resolve a contest that you filed.'],
  'insufficient-scope': [403, 'This key may not call this route.'],
  'secret-key-in-page': [
    403,
    'This key came with Sec-Fetch-Site or the Origin of one of your pages: revoke it if a page has it; a backend must leave these headers out.',
  ],
  'origin-not-allowed': [403, 'This origin is not registered for the key.'],
  'not-your-principal': [403, 'This session or key may act for its own principal only.'],
  'no-such-decision': [404, 'No decision has this id.'],
  'no-such-contest': [404, 'No contest has this id.'],
  'no-such-case': [404, 'No case has this key.'],
  'no-data': [404, 'Nothing is held about this subject.'],
  'no-retained-data': [404, 'No per-signal data is retained.'],
  'unknown-kid': [404, 'No tenant has this kid.'],
  'not-found': [404, 'There is nothing at this address.'],
  'method-not-allowed': [405, 'This address does not support this method; see the Allow header.'],
  'request-timeout': [408, 'The request did not arrive in time.'],
  'already-resolved': [409, 'The contest was resolved with another outcome.'],
  'claimed-by-another': [409, 'This is already linked to or claimed by somebody else.'],
  'case-closed': [409, 'No question waits for an answer.'],
  'stale-version': [409, 'It changed in the meantime; read it again.'],
  'idempotency-conflict': [409, 'Another body came before, with this Idempotency-Key or for this decision.'],
  erased: [409, 'The person of this write was erased since; a new grant takes a new Idempotency-Key.'],
  'payload-too-large': [413, 'The body is larger than 32,768 bytes.'],
  'unsupported-media-type': [415, 'Send application/json, not compressed.'],
  'unknown-purpose': [422, 'The tenant has not defined this purpose.'],
  'rate-limited': [429, 'Too many requests; retry after the seconds in Retry-After.'],
  'too-many-cases': [
    429,
    'Several objections came from your network today, so this one was not filed. Try again tomorrow, or write to the site: that counts as your objection.',
  ],
  'headers-too-large': [431, 'The headers are larger than 16,384 bytes; the site’s cookies are among them.'],
  'consent-missing': [451, 'The person has not agreed to this purpose, or no longer does.'],
  internal: [500, 'Something went wrong here; the log has a line with this X-Request-Id.'],
  unavailable: [503, 'The server cannot do this right now; retry after the seconds in Retry-After.'],
} as const satisfies Readonly<Record<string, readonly [status: number, message: string]>>;

export type ErrorCode = keyof typeof ERRORS;

export interface RefusalOptions {
  /** Instructions for the caller, one sentence each. */
  readonly details?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** A refusal outside the ingest core. Any other thrown error is a bug and is answered as `internal`. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly status: (typeof ERRORS)[ErrorCode][0];
  readonly details: readonly string[] | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: RefusalOptions = {}) {
    super(ERRORS[code][1]);
    this.name = 'Refusal';
    this.code = code;
    this.status = ERRORS[code][0];
    this.details = options.details;
    this.headers = options.headers ?? {};
  }
}

/**
 * The tenant was removed after its credential was checked: the caller gets the answer that its next request
 * will get.
 */
export class TenantGone extends Refusal {
  constructor() {
    super('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
    this.name = 'TenantGone';
  }
}

export function errorBody(code: ErrorCode, details?: readonly string[]) {
  const base = { error: code, message: ERRORS[code][1] };
  return details === undefined ? base : { ...base, details };
}

/**
 * Storage throws it when nothing was done and a retry may work: the queue is full, or the database is busy or
 * unreachable.
 */
export class Unavailable extends Error {
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds = 1, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Unavailable';
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * The connection was lost during a COMMIT, so the outcome is unknown. An idempotent request may be retried.
 */
export class OutcomeUnknown extends Unavailable {
  constructor(cause: Error) {
    super('the connection to the database was lost during the write: it may or may not have been done', 1, {
      cause,
    });
    this.name = 'OutcomeUnknown';
  }
}

/** A statement succeeded without its effect, as a trigger can make it do. The transaction is rolled back. */
export class WriteUndone extends Error {
  /** @param failure such as `API key key_1 is not revoked` */
  constructor(failure: string) {
    super(`${failure}: the database undid the change, as a trigger does; \`gpd doctor\` names it`);
    this.name = 'WriteUndone';
  }
}

/** The result of `run`, or `fallback` if it throws. */
export function tryOr<T, Otherwise>(run: () => T, fallback: Otherwise): T | Otherwise {
  try {
    return run();
  } catch {
    return fallback;
  }
}

/** True if `run` does not throw. */
export function succeeds(run: () => unknown): boolean {
  return tryOr(() => [run()], null) !== null;
}

/** The code of a system's or a driver's error, such as ENOSPC or 57P01; empty without one. */
export function errorCode(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
}

/** The driver's error, even when it was already wrapped in {@link Unavailable}. */
export function driverError(thrown: unknown): Error {
  if (thrown instanceof Unavailable && thrown.cause instanceof Error) return thrown.cause;
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
