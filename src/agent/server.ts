import { fromBase64, toJson } from '../browser/encoding.ts';
import { doc } from '../browser/page.ts';
import { ASYMMETRIC_ALG, POINT_BYTES, UNCOMPRESSED } from '../seal/constants.ts';
import type { Identified, IngestResponse, Recipient, SealedBundle, Unavailable } from './types.ts';

/** The server's addresses, and the two requests to it: for the tenant's key, and with a sealed bundle. */

interface Reply {
  readonly status: number;
  /** Null if the body is not JSON. */
  readonly body: unknown;
  readonly retryAfterSeconds: number | null;
  /**
   * Milliseconds by which this device's clock is ahead of the server's; NaN if the page cannot read the time.
   */
  readonly aheadMs: number;
}

const MESSAGES: Readonly<Record<Unavailable['cause'], string>> = {
  'insecure-context': 'This page is not a secure context: serve it over https or from localhost.',
  key: 'The server gave no usable seal key for this kid.',
  network: 'The server could not be reached.',
  timeout: 'The server did not answer in time.',
  refused: 'The server refused the request before it came to a verdict.',
  internal: 'Something failed in the agent.',
  'no-browser': 'There is no page here.',
  context: 'The context must be 1 to 64 of A-Z a-z 0-9 . _ : -.',
  'nothing-to-update': 'This page has no verdict yet: call identify first.',
};

/** A missing verdict as a value. @param reply the server's answer, if there was one */
export function unavailable(cause: Unavailable['cause'], reply?: Reply): Unavailable {
  const error = (reply?.body as { error?: unknown } | null | undefined)?.error;
  return {
    sent: false,
    reason: 'unavailable',
    cause,
    status: reply?.status ?? null,
    error: typeof error === 'string' ? error : null,
    retryAfterSeconds: reply?.retryAfterSeconds ?? null,
    message: MESSAGES[cause],
  };
}

/** Returns every failure as a value. A redirect is refused: it would send the bundle elsewhere. */
async function request(url: string, init: RequestInit): Promise<Reply | Unavailable> {
  try {
    const response = await fetch(url, { redirect: 'error', ...init });
    const { status, headers } = response;
    const seconds = Number(headers.get('retry-after') ?? Number.NaN);
    const aheadMs = aheadOf(headers);
    const body = parse(await response.text());
    return { status, body, retryAfterSeconds: Number.isFinite(seconds) ? seconds : null, aheadMs };
  } catch {
    return unavailable(init.signal?.aborted ? 'timeout' : 'network');
  }
}

/**
 * Compares the clock with `Date` (RFC 9110 section 6.6.1). A cache adds the age of the answer (RFC 9111
 * section 5.1).
 */
function aheadOf(headers: Headers): number {
  return Date.now() - Date.parse(headers.get('date') ?? '') - Math.round(Number(headers.get('age'))) * 1000;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function isUnavailable(outcome: object): outcome is Unavailable {
  return 'cause' in outcome;
}

export interface ServerFacts {
  readonly key: Recipient;
  /**
   * Milliseconds by which this device's clock is ahead of the server's; 0 if it is right or not known yet.
   */
  readonly aheadMs: number;
}

/** A smaller difference may come from the whole seconds of `Date` and from the way of the answer. */
const TOLERATED_MS = 60_000;

/** Kept for the life of the page; `decrypt-failed` (a rotation) and `stale` ask the server again. */
const cache = new Map<string, ServerFacts>();

function isPoint(publicKey: string): boolean {
  try {
    const bytes = fromBase64(publicKey);
    return bytes.length === POINT_BYTES && bytes[0] === UNCOMPRESSED;
  } catch {
    return false;
  }
}

function readKey(body: unknown, kid: string): Recipient | null {
  const { kid: named, alg, publicKey } = (body ?? {}) as Record<string, unknown>;
  if (named !== kid || alg !== ASYMMETRIC_ALG || typeof publicKey !== 'string') return null;
  return isPoint(publicKey) ? { kid, publicKey } : null;
}

/**
 * Loads the tenant's public seal key and the server's time (GET /_fp/pubkey).
 * @param reload bypasses the caches of this page and of the browser: only such an answer has the present time
 */
export async function loadServerFacts(
  endpoint: string,
  kid: string,
  signal: AbortSignal,
  reload: boolean,
): Promise<ServerFacts | Unavailable> {
  const url = `${endpoint}/_fp/pubkey?kid=${encodeURIComponent(kid)}`;
  const cached = cache.get(url);
  if (cached && !reload) return cached;
  const reply = await request(url, { signal, credentials: 'omit', cache: reload ? 'reload' : 'default' });
  if (isUnavailable(reply)) return reply;
  const key = reply.status === 200 ? readKey(reply.body, kid) : null;
  if (!key) return unavailable('key', reply);
  const aheadMs = reload && Math.abs(reply.aheadMs) > TOLERATED_MS ? reply.aheadMs : 0;
  const facts = { key, aheadMs };
  cache.set(url, facts);
  return facts;
}

/** Only a verdict has both fields; every other body is an error, `{error}`. */
function isIngestResponse(body: unknown): body is IngestResponse {
  const { reason, requestId } = (body ?? {}) as Record<string, unknown>;
  return typeof reason === 'string' && typeof requestId === 'string';
}

function readReply(reply: Reply): Identified | Unavailable {
  if (!isIngestResponse(reply.body)) return unavailable('refused', reply);
  if (reply.body.askAgain) doc.dispatchEvent(new Event('gpd-ask-again'));
  return { sent: true, status: reply.status, response: reply.body };
}

/** POST /_fp/i/v1 with the cookie, which the answer renews: the transparency token is bound to it. */
export async function send(
  endpoint: string,
  bundle: SealedBundle,
  signal: AbortSignal,
): Promise<Identified | Unavailable> {
  const reply = await request(`${endpoint}/_fp/i/v1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    credentials: 'include',
    cache: 'no-store',
    body: toJson(bundle),
    signal,
  });
  return isUnavailable(reply) ? reply : readReply(reply);
}

/**
 * The address before `/v1/`, because a proxy may serve gpd below a path. For a copy in another folder, only
 * its origin.
 */
function serverOf(scriptUrl: string): string {
  const { origin, pathname } = new URL(scriptUrl);
  return origin + (/^(.*)\/v1\/[^/]*$/.exec(pathname)?.[1] ?? '');
}

/** The base address of the server, without a slash at the end. */
export function endpointOf(endpoint: string | undefined, scriptUrl: string | null): string {
  const base = endpoint ?? (scriptUrl === null ? location.origin : serverOf(scriptUrl));
  return new URL(base, location.href).href.replace(/\/+$/, '');
}

/**
 * The address of the worker file, or null: browsers start workers from the page's origin only.
 * @param workerUrl from IdentifyOptions: null for no worker, undefined for the file next to the script
 */
export function workerUrlOf(workerUrl: string | null | undefined, scriptUrl: string | null): string | null {
  const base = workerUrl === undefined ? scriptUrl : location.href;
  if (workerUrl === null || base === null) return null;
  const url = new URL(workerUrl ?? 'agent-worker.js', base);
  return url.origin === location.origin ? url.href : null;
}

/** The passkey script is served from the same folder. */
export const passkeyUrlOf = (endpoint: string, scriptUrl: string | null): string =>
  new URL('agent-passkey.js', scriptUrl ?? `${endpoint}/v1/`).href;
