import { isRecord, type MALFORMED, parseJson, readText } from './body.ts';
import { ConsentError, type ErrorFacts, type ErrorKind, kindOfStatus } from './errors.ts';
import { checkCallTimeout, type Settings } from './options.ts';
import { isRetryable, parseRetryAfter, waitMs } from './schedule.ts';
import type { CallOptions } from './types.ts';
import { USER_AGENT } from './version.ts';

/** One call: a deadline, attempts and waits inside it, and a text or an error at the end (SPEC.md sections 3 to 5). */

export interface Call {
  /** Name of the method, for errors. */
  readonly name: string;
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly body?: object;
  readonly accept?: string;
  readonly idempotencyKey?: string;
  /** False: the call is sent without the key. */
  readonly authorized?: boolean;
  /** Statuses of a successful answer. */
  readonly statuses: readonly number[];
  readonly timeoutMs: number;
  /** Principal ids of the call: they must not be in an error. */
  readonly principals: readonly string[];
}

export interface Answer {
  readonly text: string | typeof MALFORMED;
  readonly status: number;
  readonly requestId: string | null;
}

type Outcome = { readonly answer: Answer } | { readonly error: ConsentError; readonly again: Again };
/** `replay`: the connection was closed before the first byte of an answer. */
type Again = 'no' | 'retry' | 'replay';

const BROKEN = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const CODE = /^[a-z][a-z0-9-]{0,63}$/;
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Shorter principal ids are only compared as a whole, because many words contain them. */
const MIN_CONTAINED = 4;

/** False on workerd with a compatibility date before 2024-11-11, whose fetch throws if it is given `cache`. */
const HAS_CACHE_MODE = 'cache' in Request.prototype;

const errorCodeOf = (error: unknown): unknown =>
  error instanceof Error ? (error.cause as { code?: unknown } | undefined)?.code : undefined;

export class Transport {
  readonly #settings: Settings;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #running = new Set<AbortController>();
  #closed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#headers = {
      'user-agent': USER_AGENT,
      accept: 'application/json',
      'accept-encoding': 'identity',
      'cache-control': 'no-store',
    };
  }

  /** Cancels running calls. Connections belong to the global fetch and close when they are idle. */
  close(): void {
    this.#closed = true;
    for (const controller of this.#running) controller.abort();
  }

  /** @throws {ConsentError} config, once the client is closed */
  checkOpen(method: string): void {
    if (this.#closed) throw new ConsentError(method, 'config', { code: 'closed' });
  }

  /** @throws {ConsentError}, or the reason of the caller's signal */
  async send(call: Call, { signal, timeoutMs }: CallOptions = {}): Promise<Answer> {
    this.checkOpen(call.name);
    signal?.throwIfAborted();
    const time = timeoutMs === undefined ? call.timeoutMs : checkCallTimeout(timeoutMs);
    const deadline = performance.now() + time;
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const timer = setTimeout(abort, time);
    signal?.addEventListener('abort', abort, { once: true });
    this.#running.add(controller);
    try {
      return await this.#attempts(call, controller.signal, deadline);
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      signal?.throwIfAborted();
      this.checkOpen(call.name);
      throw new ConsentError(call.name, 'timeout');
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      this.#running.delete(controller);
    }
  }

  async #attempts(call: Call, signal: AbortSignal, deadline: number): Promise<Answer> {
    const init = this.#initOf(call, signal);
    let replayed = false;
    for (let retry = 1; ; ) {
      const outcome = await this.#attempt(call, init);
      if ('answer' in outcome) return outcome.answer;
      const { error, again } = outcome;
      if (again === 'replay' && !replayed) {
        replayed = true;
        continue;
      }
      if (again === 'no' || retry > this.#settings.retries) throw error;
      const wait = waitMs(retry, error.retryAfterSeconds, deadline - performance.now(), Math.random());
      if (wait === null) throw error;
      await sleep(wait, signal);
      retry += 1;
    }
  }

  #initOf(call: Call, signal: AbortSignal): RequestInit {
    const headers: Record<string, string> = { ...this.#headers };
    if (call.accept !== undefined) headers['accept'] = call.accept;
    if (call.authorized !== false) headers['authorization'] = `Bearer ${this.#settings.key}`;
    if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey;
    // Next.js 14 stores answers unless this forbids it, and then a withdrawal has no effect.
    const cache = HAS_CACHE_MODE ? ({ cache: 'no-store' } as const) : {};
    const init: RequestInit = { method: call.method, headers, redirect: 'manual', signal, ...cache };
    if (call.body === undefined) return init;
    headers['content-type'] = 'application/json';
    return { ...init, body: JSON.stringify(call.body) };
  }

  /** @throws {Error} when the call was aborted */
  async #attempt(call: Call, init: RequestInit): Promise<Outcome> {
    let hasResponse = false;
    try {
      // Called without a receiver, because the fetch of workerd accepts only the global object.
      const { fetch, base } = this.#settings;
      const response = await fetch(base + call.path, init);
      hasResponse = true;
      const text = await readText(response);
      if (call.statuses.includes(response.status)) {
        const requestId = this.#requestIdOf(call, response);
        return { answer: { text, status: response.status, requestId } };
      }
      const error = this.#errorOf(call, response, text);
      return { error, again: isRetryable(response.status) ? 'retry' : 'no' };
    } catch (error) {
      if (init.signal?.aborted) throw error;
      const wasClosed = !hasResponse && BROKEN.has(String(errorCodeOf(error)));
      return { error: new ConsentError(call.name, 'network'), again: wasClosed ? 'replay' : 'retry' };
    }
  }

  #errorOf(call: Call, response: Response, text: Answer['text']): ConsentError {
    const kind = kindOfStatus(response.status);
    return new ConsentError(call.name, kind, {
      code: this.#codeOf(call, kind, parseJson(text)),
      status: response.status,
      requestId: this.#requestIdOf(call, response),
      retryAfterSeconds: parseRetryAfter(response.headers.get('retry-after'), Date.now()),
    });
  }

  #codeOf(call: Call, kind: ErrorKind, body: unknown): string {
    const code = isRecord(body) ? body['error'] : undefined;
    return typeof code === 'string' && CODE.test(code) && !this.#tells(call, code) ? code : kind;
  }

  #requestIdOf(call: Call, response: Response): string | null {
    const id = response.headers.get('x-request-id');
    return id !== null && REQUEST_ID.test(id) && !this.#tells(call, id) ? id : null;
  }

  /** True if the text contains a secret of the call: a proxy may echo what it was sent. */
  #tells(call: Call, text: string): boolean {
    return [this.#settings.key, ...call.principals].some((secret) =>
      secret.length < MIN_CONTAINED ? text === secret : text.includes(secret),
    );
  }
}

/** @throws {Error} once the signal is aborted */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new Error('aborted'));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

export function malformed(call: Pick<Call, 'name'>, answer: Answer): ConsentError {
  const facts: ErrorFacts = { status: answer.status, requestId: answer.requestId };
  return new ConsentError(call.name, 'response', facts);
}
