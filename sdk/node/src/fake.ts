import * as args from './check-args.ts';
import { ConsentError } from './errors.ts';
import { FakeLog, type GpcPolicy, TIME, type WriteMethod } from './fake-log.ts';
import { FakeSigner, type FakeState } from './fake-signer.ts';
import { checkCookieDomain } from './options.ts';
import type { RequestLike } from './request.ts';
import * as shapes from './shapes.ts';
import { parseState, STATE_COOKIE } from './state-cookie.ts';
import type {
  CallOptions,
  Check,
  Consent,
  ConsentGrant,
  ConsentState,
  ConsentWrite,
  CurrentState,
  Decision,
  Health,
  History,
  MayOptions,
  OutcomeTime,
  Permissions,
  Receipt,
  ReportedOutcome,
  Session,
  Verdict,
  VisitorState,
  WriteOptions,
  WriteResult,
} from './types.ts';
import { VERSION } from './version.ts';
import { type VisitorCalls, type VisitorSettings, Visitors } from './visitor.ts';

export type { GpcPolicy } from './fake-log.ts';

export interface FakeOptions {
  readonly onUnavailable?: 'deny' | 'error' | undefined;
  /** Domain of the cookies that this fake returns. */
  readonly cookieDomain?: string | undefined;
  /** The clock for the age of cookies: milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
}

export interface FakeCall {
  readonly method: string;
  readonly args: readonly unknown[];
}

/** A fake of the client for your tests. It works in memory and allows only what was granted. */
export class FakeConsent implements Consent {
  /** All calls, in order. */
  readonly calls: FakeCall[] = [];
  readonly #settings: VisitorSettings;
  readonly #log = new FakeLog();
  readonly #verdicts = new Map<string, Verdict>();
  readonly #outcomes = new Map<string, ReportedOutcome>();
  readonly #signer = new FakeSigner();
  readonly #visitors: Visitors;
  #unavailable = false;
  #closed = false;

  constructor(options: FakeOptions = {}) {
    const { onUnavailable = 'deny', cookieDomain, now = Date.now } = options;
    const domain = checkCookieDomain(cookieDomain);
    this.#settings = { onUnavailable, timeoutMs: 2000, cookieDomain: domain, now };
    this.#visitors = new Visitors(this.#visitorCalls(), this.#settings);
  }

  /** A `Cookie` header as the browser of this person would send it now. Later it is as old as your clock says. */
  async cookieFor(principalId: string): Promise<string> {
    args.checkPrincipal('cookieFor', principalId);
    return `${STATE_COOKIE}=${await this.#signer.sign(principalId, this.#visitorState(principalId, false))}`;
  }

  /** Makes all further calls fail as if the server were down, or work again. */
  setUnavailable(unavailable: boolean): void {
    this.#unavailable = unavailable;
  }

  /** Sets the effect of Global Privacy Control on a purpose; `opt-out` if it was not set. */
  setGpcPolicy(purpose: string, policy: GpcPolicy): void {
    this.#log.setGpcPolicy(purpose, policy);
  }

  /** Sets the verdict that `decision` returns for this request. */
  setDecision(requestId: string, verdict: Partial<Verdict>): void {
    this.#verdicts.set(requestId, {
      class: 'human',
      reason: 'ok',
      visitorId: null,
      confidence: 0,
      suspectScore: null,
      rules: [],
      policyVersion: '1',
      decidedAt: TIME,
      restricted: false,
      ...verdict,
      requestId,
    });
  }

  async isAllowed(check: Check): Promise<boolean> {
    args.checkCheck('isAllowed', check);
    this.#called('isAllowed', check);
    return this.#decide('isAllowed', check).allowed;
  }

  async canProcess(check: Check): Promise<Decision> {
    args.checkCheck('canProcess', check);
    this.#called('canProcess', check);
    return this.#decide('canProcess', check);
  }

  async canProcessMany(checks: readonly Omit<Check, 'minSeq'>[]): Promise<Decision[]> {
    args.checkBatch('canProcessMany', checks);
    this.#called('canProcessMany', checks);
    return checks.map((check) => this.#decide('canProcessMany', check));
  }

  async grant(write: ConsentGrant, options?: WriteOptions): Promise<WriteResult> {
    return this.#write('grant', write, options);
  }

  async deny(write: ConsentWrite, options?: WriteOptions): Promise<WriteResult> {
    return this.#write('deny', write, options);
  }

  async withdraw(write: ConsentWrite, options?: WriteOptions): Promise<WriteResult> {
    return this.#write('withdraw', write, options);
  }

  async state(principalId: string): Promise<ConsentState> {
    args.checkPrincipal('state', principalId);
    this.#reach('state', principalId);
    return { principalId, purposes: this.#log.state(principalId) };
  }

  async history(
    principalId: string,
    page: { readonly cursor?: string | undefined; readonly limit?: number | undefined } = {},
  ): Promise<History> {
    args.checkPrincipal('history', principalId);
    this.#reach('history', principalId, page);
    return this.#log.history(principalId, page.cursor, page.limit ?? 50);
  }

  readonly sessions = {
    create: async (principalId: string): Promise<Session> => {
      args.checkPrincipal('sessions.create', principalId);
      this.#reach('sessions.create', principalId);
      return { token: `gpd_ps_fake${this.calls.length}`, principalId, expiresAt: TIME };
    },
  };

  async receipt(seq: number): Promise<Receipt> {
    args.checkSeq('receipt', seq);
    this.#reach('receipt', seq);
    throw new ConsentError('receipt', 'not-found', { status: 404 });
  }

  async proof(seq: number): Promise<string> {
    args.checkSeq('proof', seq);
    this.#reach('proof', seq);
    throw new ConsentError('proof', 'not-found', { status: 404 });
  }

  async decision(requestId: string): Promise<Verdict> {
    args.checkRequestId('decision', requestId);
    this.#reach('decision', requestId);
    return this.#verdictOf('decision', requestId);
  }

  async reportOutcome(
    requestId: string,
    outcome: ReportedOutcome['outcome'],
    time: OutcomeTime = {},
  ): Promise<ReportedOutcome> {
    const name = 'reportOutcome';
    args.checkReport(name, requestId, outcome);
    this.#reach(name, requestId, outcome, time);
    this.#verdictOf(name, requestId);
    const stored = this.#outcomes.get(requestId) ?? { requestId, outcome, at: time.at ?? TIME };
    if (stored.outcome !== outcome || (time.at !== undefined && stored.at !== time.at))
      throw new ConsentError(name, 'conflict', { code: 'idempotency-conflict', status: 409 });
    this.#outcomes.set(requestId, stored);
    return stored;
  }

  async readState(
    cookieHeader: string | null | undefined,
    options: CallOptions = {},
  ): Promise<VisitorState | null> {
    this.#called('readState', cookieHeader);
    return this.#visitors.readState(cookieHeader, options);
  }

  async currentState(
    cookieHeader: string | null | undefined,
    options: CallOptions = {},
  ): Promise<CurrentState> {
    this.#called('currentState', cookieHeader);
    return this.#visitors.currentState(cookieHeader, options);
  }

  async may(
    request: RequestLike,
    purposes: readonly string[],
    { principalId, ...options }: MayOptions = {},
  ): Promise<Permissions> {
    args.checkPurposes('may', purposes, principalId);
    this.#called('may', request, purposes, { principalId });
    return this.#visitors.may(request, purposes, principalId, options);
  }

  async ping(): Promise<Health> {
    this.#reach('ping');
    return { status: 'ok', version: `fake ${VERSION}` };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  #visitorCalls(): VisitorCalls {
    const reach = (method: string): void => {
      if (this.#unavailable) throw new ConsentError(method, 'network');
    };
    return {
      fetchKeys: async (method) => {
        reach(method);
        return this.#signer.keys();
      },
      refresh: async (method, state, gpc) => {
        reach(method);
        const principalId = this.#signer.principalOf(state.subject);
        const current = principalId === undefined ? null : this.#visitorState(principalId, gpc);
        // gpd does not know a person who has never chosen.
        if (principalId === undefined || !current?.seq)
          throw new ConsentError(method, 'not-found', { code: 'no-data', status: 404 });
        const signed = parseState(await this.#signer.sign(principalId, current));
        if (signed === null) throw new ConsentError(method, 'response');
        return { signed, purposes: current.purposes, seq: current.seq };
      },
      check: async (method, principalId, purposes) =>
        purposes.map((purpose) => this.#decide(method, { principalId, purpose })),
    };
  }

  #visitorState(principalId: string, gpc: boolean): FakeState {
    return { ...this.#log.visitorState(principalId, gpc), at: this.#settings.now() };
  }

  #verdictOf(method: string, requestId: string): Verdict {
    const verdict = this.#verdicts.get(requestId);
    if (verdict) return verdict;
    throw new ConsentError(method, 'not-found', { code: 'no-such-decision', status: 404 });
  }

  #called(method: string, ...called: unknown[]): void {
    if (this.#closed) throw new ConsentError(method, 'config', { code: 'closed' });
    this.calls.push({ method, args: called });
  }

  #reach(method: string, ...called: unknown[]): void {
    this.#called(method, ...called);
    if (this.#unavailable) throw new ConsentError(method, 'network');
  }

  #decide(method: string, check: Check): Decision {
    if (!this.#unavailable) return this.#log.decide(check);
    const error = new ConsentError(method, 'network');
    if (this.#settings.onUnavailable === 'error') throw error;
    return shapes.unavailable(error);
  }

  #write(method: WriteMethod, write: ConsentGrant, options: WriteOptions = {}): WriteResult {
    args.checkWrite(method, write);
    const { idempotencyKey } = options;
    if (idempotencyKey !== undefined) args.checkIdempotencyKey(method, idempotencyKey);
    this.#reach(method, write);
    return this.#log.write(method, write, idempotencyKey);
  }
}
