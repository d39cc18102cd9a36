import * as args from './check-args.ts';
import { ConsentError } from './errors.ts';
import { FakeLog, type GpcPolicy, TIME, type WriteMethod } from './fake-log.ts';
import * as shapes from './shapes.ts';
import type {
  Check,
  Consent,
  ConsentGrant,
  ConsentState,
  ConsentWrite,
  Decision,
  Health,
  History,
  OutcomeTime,
  Receipt,
  ReportedOutcome,
  Session,
  Verdict,
  WriteOptions,
  WriteResult,
} from './types.ts';
import { VERSION } from './version.ts';

export type { GpcPolicy } from './fake-log.ts';

export interface FakeCall {
  readonly method: string;
  readonly args: readonly unknown[];
}

/** A fake of the client for your tests. It works in memory and allows only what was granted. */
export class FakeConsent implements Consent {
  /** All calls, in order. */
  readonly calls: FakeCall[] = [];
  readonly #onUnavailable: 'deny' | 'error';
  readonly #log = new FakeLog();
  readonly #verdicts = new Map<string, Verdict>();
  readonly #outcomes = new Map<string, ReportedOutcome>();
  #unavailable = false;
  #closed = false;

  constructor(options: { readonly onUnavailable?: 'deny' | 'error' } = {}) {
    this.#onUnavailable = options.onUnavailable ?? 'deny';
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

  async ping(): Promise<Health> {
    this.#reach('ping');
    return { status: 'ok', version: `fake ${VERSION}` };
  }

  async close(): Promise<void> {
    this.#closed = true;
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
    if (this.#onUnavailable === 'error') throw error;
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
