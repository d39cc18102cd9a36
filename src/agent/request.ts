import type { Unavailable } from './types.ts';

export interface Reply {
  readonly status: number;
  /** Null when the body is not JSON. */
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
  'nothing-to-update': 'This page has no verdict yet: call identify first.',
};

/** A missing verdict as a value; `reply` tells what the server said, if it said anything. */
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

/** One request; whatever goes wrong on the way is a value. A redirect is refused: it would carry the bundle elsewhere. */
export async function request(url: string, init: RequestInit): Promise<Reply | Unavailable> {
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

/** RFC 9110 section 6.6.1; a cache on the way adds how old the answer is (RFC 9111 section 5.1). */
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
