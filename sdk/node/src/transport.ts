import { isRecord, MAX_BODY_BYTES, MAX_EXPORT_BYTES, parseJson, readText } from './body.ts';
import type { Answer, Call, Sender } from './calls.ts';
import { ConsentError, type ErrorKind, kindOfStatus } from './errors.ts';
import { reasonOf } from './network.ts';
import { checkCallTimeout, type Settings } from './options.ts';
import { isRetryable, parseRetryAfter, waitMs } from './schedule.ts';
import type { CallOptions } from './types.ts';
import { USER_AGENT } from './version.ts';
import { OPERATIONS, type OperationRow } from './wire.ts';

/** Sends calls: a deadline, attempts and waits inside it, and a text or an error at the end (SPEC.md sections 3 to 5). */

type Outcome = { readonly answer: Answer } | { readonly error: ConsentError; readonly again: Again };
/** `replay`: the connection was closed before the first byte of an answer. */
type Again = 'no' | 'retry' | 'replay';

const CODE = /^[a-z][a-z0-9-]{0,63}$/;
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** Shorter principal ids are only compared as a whole, because many words contain them. */
const MIN_CONTAINED = 4;

/** False on workerd with a compatibility date before 2024-11-11, whose fetch throws if it is given `cache`. */
const HAS_CACHE_MODE = 'cache' in Request.prototype;
/** The fetch of Deno replays by itself what breaks before an answer. */
const HAS_REPLAY = 'Deno' in globalThis;

export class Transport implements Sender {
  readonly #settings: Settings;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #running = new Set<AbortController>();
  /** Place of the address that answered last. */
  #preferred = 0;
  #closed = false;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#headers = {
      'user-agent': USER_AGENT,
      'accept-encoding': 'identity',
      'cache-control': 'no-store',
    };
  }

  /** Cancels running calls. Connections belong to the global fetch and close when they are idle. */
  close(): void {
    this.#closed = true;
    for (const controller of this.#running) controller.abort();
  }

  begin(method: string): void {
    if (this.#closed) throw new ConsentError(method, 'config', { code: 'closed' });
  }

  async send(call: Call, { signal, timeoutMs }: CallOptions): Promise<Answer> {
    this.begin(call.name);
    signal?.throwIfAborted();
    const { isWrite }: OperationRow = OPERATIONS[call.operation];
    const ownTime = isWrite ? this.#settings.writeTimeoutMs : this.#settings.timeoutMs;
    const time = timeoutMs === undefined ? ownTime : checkCallTimeout(timeoutMs);
    const deadline = performance.now() + time;
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    const timer = setTimeout(abort, time);
    signal?.addEventListener('abort', abort, { once: true });
    this.#running.add(controller);
    try {
      return await this.#attempts(call, controller.signal, deadline);
    } catch (error) {
      if (!controller.signal.aborted) throw this.#told(error);
      signal?.throwIfAborted();
      this.begin(call.name);
      throw this.#told(new ConsentError(call.name, 'timeout'));
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      this.#running.delete(controller);
    }
  }

  malformed(call: Call, { status, requestId }: Answer): ConsentError {
    return this.#told(new ConsentError(call.name, 'response', { status, requestId, detail: 'body' }));
  }

  /** Shows an error to the caller's hook, whose own failure must not change the outcome. */
  #told<T>(error: T): T {
    try {
      if (error instanceof ConsentError) this.#settings.onError(error);
    } catch {
      // Ignored: a logger that fails would turn a denial into another error.
    }
    return error;
  }

  async #attempts(call: Call, signal: AbortSignal, deadline: number): Promise<Answer> {
    const init = this.#initOf(call, signal);
    const { bases } = this.#settings;
    // A nonce is used up by the first attempt that reached gpd.
    const retries = call.operation === 'agent' ? 0 : this.#settings.retries;
    let replayed = false;
    let at = this.#preferred;
    let tried = 1;
    for (let retry = 1; ; ) {
      const outcome = await this.#attempt(call, init, bases[at] ?? bases[0]).catch((error: unknown) => {
        // An address that lets everybody wait is not the first of the next call.
        if (performance.now() >= deadline) this.#preferred = (at + 1) % bases.length;
        throw error;
      });
      if ('answer' in outcome) {
        this.#preferred = at;
        return outcome.answer;
      }
      const { error, again } = outcome;
      if (again === 'replay' && !replayed) {
        replayed = true;
        continue;
      }
      if (again === 'no') throw error;
      const isElsewhere = error.status === null || error.status >= 500;
      if (isElsewhere) at = (at + 1) % bases.length;
      if (isElsewhere && tried < bases.length) {
        tried += 1;
        continue;
      }
      if (retry > retries) throw error;
      const wait = waitMs(retry, error.retryAfterSeconds, deadline - performance.now(), Math.random());
      if (wait === null) throw error;
      await sleep(wait, signal);
      retry += 1;
      tried = 1;
    }
  }

  #initOf({ operation, body, token, idempotencyKey }: Call, signal: AbortSignal): RequestInit {
    const { verb, accept }: OperationRow = OPERATIONS[operation];
    const headers: Record<string, string> = { ...this.#headers, accept };
    if (operation !== 'ping') headers['authorization'] = `Bearer ${token ?? this.#settings.key}`;
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    // Next.js 14 stores answers unless this forbids it, and then a withdrawal has no effect.
    const cache = HAS_CACHE_MODE ? ({ cache: 'no-store' } as const) : {};
    const init: RequestInit = { method: verb, headers, redirect: 'manual', signal, ...cache };
    if (body === undefined) return init;
    headers['content-type'] = 'application/json';
    return { ...init, body: JSON.stringify(body) };
  }

  /** @throws {Error} when the call was aborted */
  async #attempt(call: Call, init: RequestInit, base: string): Promise<Outcome> {
    let hasResponse = false;
    const { statuses }: OperationRow = OPERATIONS[call.operation];
    try {
      // Called without a receiver, because the fetch of workerd accepts only the global object.
      const { fetch } = this.#settings;
      const response = await fetch(base + call.path, init);
      hasResponse = true;
      const text = await readText(
        response,
        call.operation === 'exportLog' ? MAX_EXPORT_BYTES : MAX_BODY_BYTES,
      );
      if (statuses.includes(response.status)) {
        const requestId = this.#requestIdOf(call, response);
        return { answer: { text, status: response.status, requestId } };
      }
      const error = this.#errorOf(call, response, text);
      return { error, again: isRetryable(response.status) ? 'retry' : 'no' };
    } catch (error) {
      if (init.signal?.aborted) throw error;
      const { detail, cause } = reasonOf(error);
      if (detail === 'proxy') {
        return {
          error: new ConsentError(call.name, 'invalid-request', { status: 407, detail }),
          again: 'no',
        };
      }
      const again = !hasResponse && !HAS_REPLAY && detail === 'reset' ? 'replay' : 'retry';
      return { error: new ConsentError(call.name, 'network', { detail, cause }), again };
    }
  }

  #errorOf(call: Call, response: Response, text: Answer['text']): ConsentError {
    const kind = kindOfStatus(response.status);
    return new ConsentError(call.name, kind, {
      code: this.#codeOf(call, kind, parseJson(text)),
      status: response.status,
      requestId: this.#requestIdOf(call, response),
      retryAfterSeconds: parseRetryAfter(response.headers.get('retry-after'), Date.now()),
      detail: response.status === 407 ? 'proxy' : null,
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
    return [this.#settings.key, ...call.secrets].some((secret) =>
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
