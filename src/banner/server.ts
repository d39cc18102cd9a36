import { toJson } from '../browser/encoding.ts';
import { type Config, readConfig } from './config.ts';
import type { ConsentRecord, Write } from './record.ts';
import type { LinkResult } from './types.ts';

/** The consent API as a page may use it: a publishable key, no cookie, an answer for every failure. */

const CONFIG_TIMEOUT_MS = 6000;
const WRITE_TIMEOUT_MS = 10_000;
/** Gated scripts wait for it. */
const STATE_TIMEOUT_MS = 3000;
/** `Date` has whole seconds and an answer takes its time. */
export const TOLERATED_MS = 60_000;

export interface Failure {
  /** The server's error code, or `unreachable`. */
  readonly problem: string;
  /** A retry may succeed. */
  readonly transient: boolean;
}

export interface Entry {
  readonly purpose: string;
  readonly seq: number;
  readonly hash: string;
}

/** The ledger's answer about one purpose. */
export interface Standing {
  readonly purpose: string;
  readonly allowed: boolean;
  readonly reason: string;
  /** RFC 3339, of the last choice. */
  readonly at: string | null;
  readonly proof: { readonly seq: number; readonly hash: string };
}

export type Server = ReturnType<typeof createServerClient>;
export const isFailure = (answer: object): answer is Failure => 'problem' in answer;

/** Status 0: no answer, or none that this page may read. */
async function ask(url: string, timeoutMs: number, init: RequestInit) {
  try {
    const response = await fetch(url, {
      credentials: 'omit',
      redirect: 'error',
      referrerPolicy: 'strict-origin',
      ...init,
      signal: AbortSignal.timeout(timeoutMs),
    });
    /**
     * Milliseconds by which this device's clock is ahead of the server's; NaN if the page cannot read the
     * time.
     */
    const aheadMs = Date.now() - Date.parse(response.headers.get('date') ?? '');
    const body: unknown = await response.json().catch(() => null);
    return { status: response.status, aheadMs, body: (body ?? {}) as Record<string, unknown> };
  } catch {
    return { status: 0, aheadMs: Number.NaN, body: {} };
  }
}

type Answer = Awaited<ReturnType<typeof ask>>;

function failure({ status, body }: Answer): Failure {
  const { error } = body;
  // A key or an origin may be put right; a write that is wrong stays wrong.
  const transient = ![400, 409, 413, 415, 422].includes(status);
  return { problem: typeof error === 'string' ? error : 'unreachable', transient };
}

const post = (body: object, headers: Record<string, string>): RequestInit => ({
  method: 'POST',
  // A choice is made on the way out, too.
  keepalive: true,
  headers: { 'content-type': 'application/json', ...headers },
  body: toJson(body),
});

/** Sends the cookie that the token is bound to. */
async function link(base: string, session: string, token: string): Promise<LinkResult> {
  const init = {
    ...post({ token }, { authorization: `Bearer ${session}` }),
    credentials: 'include',
  } as const;
  const { status, body } = await ask(`${base}/v1/principals/link`, WRITE_TIMEOUT_MS, init);
  const { principalId, requestId, linkedAt, error } = body as Readonly<Record<string, string>>;
  return status === 201 && principalId && requestId && linkedAt
    ? { linked: true, principalId, requestId, linkedAt }
    : { linked: false, status, error: error ?? 'unreachable' };
}

export function createServerClient(base: string, key: string) {
  const authorization = `Bearer ${key}`;
  let aheadMs = 0;
  /** True after an answer to a write: an answer to a read may be cached, with an old time. */
  let isSure = false;

  async function askNow(...request: Parameters<typeof ask>): Promise<Answer> {
    const answer = await ask(...request);
    const isWrite = request[2].method === 'POST';
    if (Number.isNaN(answer.aheadMs) || (isSure && !isWrite)) return answer;
    aheadMs = Math.abs(answer.aheadMs) > TOLERATED_MS ? answer.aheadMs : 0;
    isSure ||= isWrite;
    return answer;
  }

  return {
    /**
     * Milliseconds by which this device's clock is ahead, from the last answer to a write, otherwise to a
     * read; 0 if it is right or unknown.
     */
    aheadMs: () => aheadMs,

    async config(language: string): Promise<Config | Failure> {
      const url = `${base}/v1/consent/banner?lang=${language}`;
      const answer = await askNow(url, CONFIG_TIMEOUT_MS, { cache: 'no-store', headers: { authorization } });
      return (answer.status === 200 && readConfig(answer.body)) || failure(answer);
    },

    async write(
      { principalId, secret }: ConsentRecord,
      { action, key: idempotencyKey, ...write }: Write,
    ): Promise<readonly Entry[] | Failure> {
      const body = { principalId, principalSecret: secret, ...write };
      const headers = { authorization, 'idempotency-key': idempotencyKey };
      const answer = await askNow(`${base}/v1/consent/${action}`, WRITE_TIMEOUT_MS, post(body, headers));
      const { entries } = answer.body;
      return answer.status === 201 && Array.isArray(entries) ? (entries as Entry[]) : failure(answer);
    },

    async state({ principalId, secret }: ConsentRecord): Promise<readonly Standing[] | Failure> {
      const init = post({ principalId, principalSecret: secret }, { authorization });
      const answer = await askNow(`${base}/v1/consent/state`, STATE_TIMEOUT_MS, init);
      const { purposes } = answer.body;
      return answer.status === 200 && Array.isArray(purposes) ? (purposes as Standing[]) : failure(answer);
    },

    async words(url: string): Promise<unknown> {
      const { status, body } = await ask(`${base}${url}`, CONFIG_TIMEOUT_MS, {});
      return status === 200 ? body : null;
    },

    link: (session: string, token: string) => link(base, session, token),
  };
}
