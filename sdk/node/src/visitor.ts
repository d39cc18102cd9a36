import { ConsentError, isUndecided } from './errors.ts';
import { checkCallTimeout } from './options.ts';
import { type RequestLike, readRequest } from './request.ts';
import type { RefreshedState, StateKeySet } from './shapes.ts';
import { isEarly, isFresh, parseState, readCookie, type SignedState, setCookieOf } from './state-cookie.ts';
import { StateKeys } from './state-keys.ts';
import type { CallOptions, CurrentState, Decision, Permissions, VisitorState } from './types.ts';

/** Answers a server that renders (SPEC.md section 10), by the calls of the client or the fake. */

export interface VisitorCalls {
  fetchKeys(method: string, options: CallOptions): Promise<StateKeySet>;
  refresh(method: string, state: SignedState, gpc: boolean, options: CallOptions): Promise<RefreshedState>;
  check(
    method: string,
    principalId: string,
    purposes: readonly string[],
    options: CallOptions,
  ): Promise<readonly Decision[]>;
}

export interface VisitorSettings {
  readonly onUnavailable: 'deny' | 'error';
  readonly timeoutMs: number;
  readonly cookieDomain?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

const NOBODY: CurrentState = { purposes: [], seq: null, at: null, setCookie: null };
/** The maximum of one call, which a client's longer timeout must not exceed. */
const MAX_CALL_MS = 60_000;

const permissionsOf = (purposes: readonly string[], setCookie: string | null): Permissions => ({
  purposes,
  setCookie,
  allows: (purpose) => purposes.includes(purpose),
});

const timeOf = ({ issuedAt }: SignedState): string => new Date(issuedAt * 1000).toISOString();

const visibleState = (state: SignedState): VisitorState => ({
  purposes: state.purposes,
  seq: state.seq,
  at: timeOf(state),
});

/** Options for each call of one question, which together last no longer than one call. */
type Budget = () => CallOptions;

export class Visitors {
  readonly #calls: VisitorCalls;
  readonly #settings: VisitorSettings;
  readonly #keys = new StateKeys();

  constructor(calls: VisitorCalls, settings: VisitorSettings) {
    this.#calls = calls;
    this.#settings = settings;
  }

  async readState(header: string | null | undefined, options: CallOptions): Promise<VisitorState | null> {
    const method = 'readState';
    const state = await this.#genuineState(method, header, this.#budget(options)).catch((error: unknown) => {
      if (isUndecided(error)) return null;
      throw error;
    });
    return state && isFresh(state, this.#settings.now()) ? visibleState(state) : null;
  }

  async currentState(header: string | null | undefined, options: CallOptions): Promise<CurrentState> {
    return this.#currentState('currentState', header, this.#budget(options));
  }

  async may(
    request: RequestLike,
    purposes: readonly string[],
    principalId: string | undefined,
    options: CallOptions,
  ): Promise<Permissions> {
    const method = 'may';
    const { cookie, gpc } = readRequest(method, request);
    const budget = this.#budget(options);
    const isAccount = principalId !== undefined;
    // A check of an account cannot carry the signal of this request, so under GPC the cookie has to allow it too.
    if (isAccount && !gpc) {
      return permissionsOf(await this.#allowedFor(method, principalId, purposes, budget), null);
    }
    const visitor = gpc
      ? await this.#stateUnderGpc(method, cookie, budget)
      : await this.#currentState(method, cookie, budget);
    const allowed = purposes.filter((purpose) => visitor.purposes.includes(purpose));
    const both = isAccount ? await this.#allowedFor(method, principalId, allowed, budget) : allowed;
    return permissionsOf(both, visitor.setCookie);
  }

  #budget({ signal, timeoutMs }: CallOptions): Budget {
    signal?.throwIfAborted();
    const time = timeoutMs === undefined ? this.#settings.timeoutMs : checkCallTimeout(timeoutMs);
    const deadline = performance.now() + time;
    return () => {
      // At least 1 ms: a call without time left ends as a timeout, which is then a denial or an error as any other.
      const remaining = Math.max(1, Math.ceil(deadline - performance.now()));
      return { signal, timeoutMs: Math.min(MAX_CALL_MS, remaining) };
    };
  }

  /** A state that gpd signed for this tenant, of any age. @throws {ConsentError} when that could not be found out */
  async #genuineState(
    method: string,
    header: string | null | undefined,
    budget: Budget,
  ): Promise<SignedState | null> {
    const text = readCookie(header);
    const state = text === null ? null : parseState(text);
    const now = this.#settings.now();
    if (state === null || isEarly(state, now)) return null;
    const fetchKeys = (): Promise<StateKeySet> => this.#calls.fetchKeys(method, budget());
    return (await this.#keys.verify(state, now, fetchKeys)) ? state : null;
  }

  #currentState(method: string, header: string | null | undefined, budget: Budget): Promise<CurrentState> {
    return this.#orNobody(async () => {
      const state = await this.#genuineState(method, header, budget);
      if (state === null) return NOBODY;
      if (isFresh(state, this.#settings.now())) return { ...visibleState(state), setCookie: null };
      return this.#refresh(method, state, false, budget);
    });
  }

  /** The purposes that gpd allows under this signal. The cookie stays as it is: the signal is that of one request. */
  #stateUnderGpc(method: string, header: string, budget: Budget): Promise<CurrentState> {
    return this.#orNobody(async () => {
      const state = await this.#genuineState(method, header, budget);
      if (state === null) return NOBODY;
      const current = await this.#refresh(method, state, true, budget);
      return current.seq === null ? current : { ...current, setCookie: null };
    });
  }

  async #refresh(method: string, state: SignedState, gpc: boolean, budget: Budget): Promise<CurrentState> {
    const domain = this.#settings.cookieDomain;
    try {
      const { signed, purposes, seq } = await this.#calls.refresh(method, state, gpc, budget());
      return { purposes, seq, at: timeOf(signed), setCookie: setCookieOf(signed.text, domain) };
    } catch (error) {
      const isGone = error instanceof ConsentError && error.kind === 'not-found';
      if (isGone) return { ...NOBODY, setCookie: setCookieOf(null, domain) };
      throw error;
    }
  }

  /** The only place where an error becomes a denial. @throws {Error} errors that must not become a denial */
  async #orNobody(ask: () => Promise<CurrentState>): Promise<CurrentState> {
    try {
      return await ask();
    } catch (error) {
      if (isUndecided(error) && this.#settings.onUnavailable === 'deny') return NOBODY;
      throw error;
    }
  }

  async #allowedFor(
    method: string,
    principalId: string,
    purposes: readonly string[],
    budget: Budget,
  ): Promise<readonly string[]> {
    if (purposes.length === 0) return [];
    const decisions = await this.#calls.check(method, principalId, purposes, budget());
    return purposes.filter((_, i) => decisions[i]?.allowed === true);
  }
}
