import { randomUUID } from 'node:crypto';
import { MALFORMED, parseJson } from './body.ts';
import * as args from './check-args.ts';
import { isUndecided } from './errors.ts';
import {
  type ClientOptions,
  type Environment,
  optionsFromEnv,
  readOptions,
  type Settings,
} from './options.ts';
import type { RequestLike } from './request.ts';
import * as shapes from './shapes.ts';
import { type Answer, type Call, malformed, Transport } from './transport.ts';
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
import { type VisitorCalls, Visitors } from './visitor.ts';

type Purposeful = Omit<Check, 'minSeq'>;

/** A client of gpd's consent API. Create one per process and share it. */
export class ConsentClient implements Consent {
  readonly #settings: Settings;
  readonly #transport: Transport;
  readonly #visitors: Visitors;

  /** @throws {ConsentError} config */
  constructor(options: ClientOptions) {
    this.#settings = readOptions(options);
    this.#transport = new Transport(this.#settings);
    this.#visitors = new Visitors(this.#visitorCalls(), this.#settings);
  }

  /** Reads GPD_CONSENT_URL and GPD_CONSENT_KEY. @throws {ConsentError} config */
  static fromEnv(
    options: Partial<ClientOptions> = {},
    environment: Environment = process.env,
  ): ConsentClient {
    return new ConsentClient({ ...options, ...optionsFromEnv(environment) });
  }

  /** Returns true only if the server's decision allows this processing. */
  async isAllowed(check: Check, options?: CallOptions): Promise<boolean> {
    return (await this.#check('isAllowed', check, options)).allowed;
  }

  /** Returns the decision with its reason and proof. It is always truthy: check `allowed`, or call `isAllowed`. */
  canProcess(check: Check, options?: CallOptions): Promise<Decision> {
    return this.#check('canProcess', check, options);
  }

  /** Returns up to 100 decisions of one snapshot, in the order of the checks. */
  async canProcessMany(checks: readonly Purposeful[], options?: CallOptions): Promise<Decision[]> {
    const name = 'canProcessMany';
    args.checkBatch(name, checks);
    return checks.length === 0 ? [] : this.#checkMany(name, checks, options);
  }

  async #checkMany(name: string, checks: readonly Purposeful[], options?: CallOptions): Promise<Decision[]> {
    const principals = checks.map(({ principalId }) => principalId);
    const body = {
      checks: checks.map(({ principalId, purpose }, i) => ({ id: String(i), principalId, purpose })),
    };
    const call = this.#post(name, '/v1/consent/can-process/batch', body, principals);
    try {
      const answer = await this.#transport.send(call, options);
      const found = shapes.readBatch(parseJson(answer.text));
      if (found === null) throw malformed(call, answer);
      return checks.map((_, i) => found.get(String(i)) ?? this.#undecided(malformed(call, answer)));
    } catch (error) {
      return checks.map(() => this.#undecided(error));
    }
  }

  grant(write: ConsentGrant, options?: WriteOptions): Promise<WriteResult> {
    return this.#write('grant', write, options);
  }

  deny(write: ConsentWrite, options?: WriteOptions): Promise<WriteResult> {
    return this.#write('deny', write, options);
  }

  /** After it has resolved, every further check is denied, on every node. */
  withdraw(write: ConsentWrite, options?: WriteOptions): Promise<WriteResult> {
    return this.#write('withdraw', write, options);
  }

  /** Returns a person's latest choice for each purpose. */
  async state(principalId: string, options?: CallOptions): Promise<ConsentState> {
    args.checkPrincipal('state', principalId);
    const call = this.#post('state', '/v1/consent/state', { principalId }, [principalId]);
    return this.#json(call, shapes.isConsentState, options);
  }

  /** Returns a person's choices, newest first. */
  async history(
    principalId: string,
    page: { readonly cursor?: string | undefined; readonly limit?: number | undefined } = {},
    options?: CallOptions,
  ): Promise<History> {
    args.checkPrincipal('history', principalId);
    const { cursor, limit } = page;
    const call = this.#post('history', '/v1/consent/history', { principalId, cursor, limit }, [principalId]);
    return this.#json(call, shapes.isHistory, options);
  }

  readonly sessions: { create(principalId: string, options?: CallOptions): Promise<Session> } = {
    /** Creates a token for one person, valid for at most 15 minutes. Give it only to that person's browser. */
    create: async (principalId, options) => {
      const name = 'sessions.create';
      args.checkPrincipal(name, principalId);
      const call = this.#post(name, '/v1/sessions', { principalId }, [principalId]);
      const timeoutMs = this.#settings.writeTimeoutMs;
      return this.#json({ ...call, statuses: [201], timeoutMs }, shapes.isSession, options);
    },
  };

  /** Returns a signed copy of an entry, for the person it is about. */
  async receipt(seq: number, options?: CallOptions): Promise<Receipt> {
    args.checkSeq('receipt', seq);
    return this.#json(this.#get('receipt', `/v1/consent/receipts/${seq}`), shapes.isReceipt, options);
  }

  /** Returns the proof of an entry as text, for `verifyProof` or an auditor. */
  async proof(seq: number, options?: CallOptions): Promise<string> {
    args.checkSeq('proof', seq);
    const call = { ...this.#get('proof', `/v1/consent/proofs/${seq}`), accept: 'text/plain' };
    const answer = await this.#transport.send(call, options);
    if (answer.text === MALFORMED) throw malformed(call, answer);
    return answer.text;
  }

  /** Returns the verdict of a visit. A browser must not deliver its own verdict. */
  async decision(requestId: string, options?: CallOptions): Promise<Verdict> {
    args.checkRequestId('decision', requestId);
    const call = this.#get('decision', `/v1/decisions/${requestId}`);
    const isAsked = (value: unknown): value is Verdict =>
      shapes.isVerdict(value) && value.requestId === requestId;
    return this.#json(call, isAsked, options);
  }

  /** Reports the outcome of a decision once. Repeating it changes nothing; a different outcome is a conflict. */
  async reportOutcome(
    requestId: string,
    outcome: ReportedOutcome['outcome'],
    { at }: OutcomeTime = {},
    options?: CallOptions,
  ): Promise<ReportedOutcome> {
    const name = 'reportOutcome';
    args.checkReport(name, requestId, outcome);
    const call = this.#post(name, `/v1/decisions/${requestId}/outcome`, { outcome, at }, []);
    const timeoutMs = this.#settings.writeTimeoutMs;
    const isAsked = (value: unknown): value is ReportedOutcome =>
      shapes.isReportedOutcome(value) && value.requestId === requestId && value.outcome === outcome;
    return this.#json({ ...call, statuses: [200, 201], timeoutMs }, isAsked, options);
  }

  /** Returns what the cookie `gpd_consent` says, offline but for gpd's keys; null denies. */
  async readState(
    cookieHeader: string | null | undefined,
    options: CallOptions = {},
  ): Promise<VisitorState | null> {
    this.#transport.checkOpen('readState');
    return this.#visitors.readState(cookieHeader, options);
  }

  /** Like `readState`, but asks gpd to renew a cookie that is older than five minutes. */
  async currentState(
    cookieHeader: string | null | undefined,
    options: CallOptions = {},
  ): Promise<CurrentState> {
    this.#transport.checkOpen('currentState');
    return this.#visitors.currentState(cookieHeader, options);
  }

  /** Returns which purposes are allowed for the page that this request asks for. It heeds `Sec-GPC`. */
  async may(
    request: RequestLike,
    purposes: readonly string[],
    { principalId, ...options }: MayOptions = {},
  ): Promise<Permissions> {
    args.checkPurposes('may', purposes, principalId);
    this.#transport.checkOpen('may');
    return this.#visitors.may(request, purposes, principalId, options);
  }

  /** Resolves if the server answers; the key is not checked. */
  async ping(options?: CallOptions): Promise<Health> {
    const call: Call = { ...this.#get('ping', '/healthz'), authorized: false };
    return this.#json(call, shapes.isHealth, options);
  }

  /** Cancels running calls; later calls are refused. */
  async close(): Promise<void> {
    this.#transport.close();
  }

  async #check(name: string, check: Check, options?: CallOptions): Promise<Decision> {
    args.checkCheck(name, check);
    const { principalId, purpose, minSeq } = check;
    const body = { principalId, purpose, minSeq };
    const call = this.#post(name, '/v1/consent/can-process', body, [principalId]);
    try {
      const answer = await this.#transport.send(call, options);
      const decision = shapes.readDecision(parseJson(answer.text));
      if (decision === null) throw malformed(call, answer);
      return decision;
    } catch (error) {
      return this.#undecided(error);
    }
  }

  #visitorCalls(): VisitorCalls {
    return {
      fetchKeys: (name, options) =>
        this.#read(this.#get(name, '/v1/consent/state-keys'), shapes.readStateKeys, options),
      refresh: (name, { text }, gpc, options) => {
        const body = { state: text, gpc: gpc || undefined };
        const call = this.#post(name, '/v1/consent/state/refresh', body, [text]);
        return this.#read(call, shapes.readRefreshed, options);
      },
      check: (name, principalId, purposes, options) =>
        this.#checkMany(
          name,
          purposes.map((purpose) => ({ principalId, purpose })),
          options,
        ),
    };
  }

  /** The only place where an error of a check becomes a denial. @throws {Error} errors that must not become a denial */
  #undecided(error: unknown): Decision {
    if (isUndecided(error) && this.#settings.onUnavailable === 'deny') return shapes.unavailable(error);
    throw error;
  }

  async #write(
    name: 'grant' | 'deny' | 'withdraw',
    write: ConsentGrant,
    options: WriteOptions = {},
  ): Promise<WriteResult> {
    args.checkWrite(name, write);
    const { idempotencyKey = randomUUID() } = options;
    args.checkIdempotencyKey(name, idempotencyKey);
    const { principalId, purposes, policyVersion, gpc, overGpc } = write;
    const body = { principalId, purposes, policyVersion, gpc, overGpc };
    const call = this.#post(name, `/v1/consent/${name}`, body, [principalId]);
    const timeoutMs = this.#settings.writeTimeoutMs;
    return this.#json({ ...call, statuses: [201], timeoutMs, idempotencyKey }, shapes.isWriteResult, options);
  }

  #json<T>(call: Call, shape: shapes.Shape<T>, options?: CallOptions): Promise<T> {
    return this.#read(call, (value) => (shape(value) ? value : null), options);
  }

  /** @param read null for a malformed answer */
  async #read<T>(call: Call, read: (value: unknown) => T | null, options?: CallOptions): Promise<T> {
    const answer: Answer = await this.#transport.send(call, options);
    const value = read(parseJson(answer.text));
    if (value === null) throw malformed(call, answer);
    return value;
  }

  #get(name: string, path: string): Call {
    return {
      name,
      path,
      method: 'GET',
      statuses: [200],
      timeoutMs: this.#settings.timeoutMs,
      principals: [],
    };
  }

  #post(name: string, path: string, body: object, principals: readonly string[]): Call {
    const { timeoutMs } = this.#settings;
    return { name, path, method: 'POST', body, statuses: [200], timeoutMs, principals };
  }
}
