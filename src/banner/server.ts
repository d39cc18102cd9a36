import { toJson } from '../browser/encoding.ts';
import { type Config, readConfig } from './config.ts';
import type { ConsentRecord, Principal, Write } from './record.ts';
import type { JoinResult, LinkResult } from './types.ts';

/** Calls the consent API with a publishable key and without cookies. Every failure is a value. */

const CONFIG_TIMEOUT_MS = 6000;
const WRITE_TIMEOUT_MS = 10_000;
/** Short, because gated scripts wait for this answer. */
const STATE_TIMEOUT_MS = 3000;
/** A smaller difference may come from the whole seconds of `Date` and from the way of the answer. */
export const TOLERATED_MS = 60_000;

export interface Failure {
  /** The server's error code, or `unreachable`. */
  readonly problem: string;
  /** True if a later attempt may succeed. */
  readonly transient: boolean;
}

export interface Entry {
  readonly purpose: string;
  readonly seq: number;
  readonly hash: string;
}

/** An answer with the JWS for `gpd_consent`; an older server sends none. */
interface Signed {
  readonly state?: string;
}

export interface Written extends Signed {
  readonly entries: readonly Entry[];
}

/** The ledger's answer about one purpose. */
export interface Standing {
  readonly purpose: string;
  readonly allowed: boolean;
  readonly reason: string;
  readonly choice: string | null;
  /** Time of the last choice, RFC 3339. */
  readonly at: string | null;
  readonly expiresAt: string | null;
  readonly policyVersion: number;
  readonly definition?: number;
  readonly overGpc?: true;
  readonly given: string;
  readonly proof: { readonly seq: number; readonly hash: string };
}

export interface Standings extends Signed {
  readonly purposes: readonly Standing[];
}

export type Server = ReturnType<typeof createServerClient>;
export const isFailure = (answer: object): answer is Failure => 'problem' in answer;

/** @returns status 0 if no answer came, or none that this page may read */
async function request(url: string, timeoutMs: number, init: RequestInit, type: 'blob' | 'json' = 'json') {
  try {
    const response = await fetch(url, {
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'strict-origin',
      ...init,
      signal: AbortSignal.timeout(timeoutMs),
    });
    // Milliseconds by which this device's clock is ahead of the server's; NaN if the page cannot read `Date`.
    const aheadMs = Date.now() - Date.parse(response.headers.get('date') ?? '');
    const body: unknown = await response[type]().catch(() => null);
    return { status: response.status, aheadMs, body: (body ?? {}) as Record<string, unknown> };
  } catch {
    return { status: 0, aheadMs: Number.NaN, body: {} };
  }
}

type Answer = Awaited<ReturnType<typeof request>>;

function failureOf({ status, body }: Answer): Failure {
  const { error } = body;
  // The tenant may correct a key or an origin later. A wrong write stays wrong.
  const transient = ![400, 409, 413, 415, 422].includes(status);
  return { problem: typeof error === 'string' ? error : 'unreachable', transient };
}

const post = (body: object, headers: Record<string, string>): RequestInit => ({
  method: 'POST',
  // People choose on their way out too: the request outlives the page.
  keepalive: true,
  headers: { 'content-type': 'application/json', ...headers },
  body: toJson(body),
});

/** Posts for the person of a session, which the page's backend opened. */
async function postInSession(url: string, session: string, payload: object, init: RequestInit = {}) {
  const answer = await request(url, WRITE_TIMEOUT_MS, {
    ...post(payload, { authorization: `Bearer ${session}` }),
    ...init,
  });
  const body = answer.body as Readonly<Record<string, string>>;
  return { status: answer.status, body, error: body['error'] ?? 'unreachable' };
}

/** The transparency token is bound to the cookie, so this one request sends it. */
async function linkPrincipal(base: string, session: string, token: string): Promise<LinkResult> {
  const url = `${base}/v1/principals/link`;
  const { status, body, error } = await postInSession(url, session, { token }, { credentials: 'include' });
  const { principalId, requestId, linkedAt } = body;
  return status === 201 && principalId && requestId && linkedAt
    ? { linked: true, principalId, requestId, linkedAt }
    : { linked: false, status, error };
}

async function joinPrincipal(
  base: string,
  session: string,
  { principalId: browser, secret }: Principal,
): Promise<JoinResult> {
  const { status, body, error } = await postInSession(`${base}/v1/principals/join`, session, {
    principalId: browser,
    principalSecret: secret,
  });
  const { principalId, joinedAt } = body;
  return (status === 200 || status === 201) && principalId && joinedAt
    ? { joined: true, principalId, joinedAt }
    : { joined: false, status, error };
}

export function createServerClient(base: string, key: string) {
  const authorization = `Bearer ${key}`;
  let aheadMs = 0;
  /** True once a write was answered: the answer to a read may come from a cache, with an old time. */
  let isTimedByWrite = false;

  async function timedRequest(...parts: Parameters<typeof request>): Promise<Answer> {
    const answer = await request(...parts);
    const isWrite = parts[2].method === 'POST';
    if (Number.isNaN(answer.aheadMs) || (isTimedByWrite && !isWrite)) return answer;
    aheadMs = Math.abs(answer.aheadMs) > TOLERATED_MS ? answer.aheadMs : 0;
    isTimedByWrite ||= isWrite;
    return answer;
  }

  return {
    /** Milliseconds by which this device's clock is ahead; 0 if it is right or unknown. */
    aheadMs: () => aheadMs,

    async config(language: string): Promise<Config | Failure> {
      const url = `${base}/v1/consent/banner?lang=${language}`;
      const answer = await timedRequest(url, CONFIG_TIMEOUT_MS, {
        cache: 'no-store',
        headers: { authorization },
      });
      return (answer.status === 200 && readConfig(answer.body)) || failureOf(answer);
    },

    async write(
      { principalId, secret }: ConsentRecord,
      { action, key: idempotencyKey, ...write }: Write,
    ): Promise<Written | Failure> {
      const headers = { authorization, 'idempotency-key': idempotencyKey };
      const init = post({ principalId, principalSecret: secret, ...write }, headers);
      const answer = await timedRequest(`${base}/v1/consent/${action}`, WRITE_TIMEOUT_MS, init);
      const isWritten = answer.status === 201 && Array.isArray(answer.body['entries']);
      return isWritten ? (answer.body as unknown as Written) : failureOf(answer);
    },

    async state({ principalId, secret }: ConsentRecord): Promise<Standings | Failure> {
      const init = post({ principalId, principalSecret: secret }, { authorization });
      const answer = await timedRequest(`${base}/v1/consent/state`, STATE_TIMEOUT_MS, init);
      return answer.status === 200 && Array.isArray(answer.body['purposes'])
        ? (answer.body as unknown as Standings)
        : failureOf(answer);
    },

    /** @returns the receipts of the choices, as a page to print; false if none came */
    async receiptPage({ principalId, secret }: Principal): Promise<Blob | false> {
      const init = post({ principalId, principalSecret: secret }, { authorization, accept: 'text/html' });
      const answer = await timedRequest(`${base}/v1/consent/receipts`, WRITE_TIMEOUT_MS, init, 'blob');
      return answer.status === 200 && (answer.body as unknown as Blob);
    },

    link: (session: string, token: string) => linkPrincipal(base, session, token),
    join: (session: string, principal: Principal) => joinPrincipal(base, session, principal),
  };
}
