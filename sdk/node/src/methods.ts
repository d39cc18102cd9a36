import { randomUUID } from 'node:crypto';
import {
  type AgentAnswer,
  type AgentOptions,
  describeRequest,
  type SignedRequest,
  UNSIGNED,
  unasked,
} from './agents.ts';
import { Calls, call, type Purposeful, type Sender } from './calls.ts';
import * as args from './check-args.ts';
import { adviceOf, type CheckoutAdvice, type CheckoutOptions } from './checkout.ts';
import { ConsentError } from './errors.ts';
import type { RequestLike } from './request.ts';
import * as shapes from './shapes.ts';
import type {
  BrowserPrincipal,
  CallOptions,
  Check,
  ConsentGrant,
  ConsentState,
  ConsentWrite,
  CurrentState,
  Decision,
  Health,
  History,
  HistoryEvent,
  MayOptions,
  OutcomeTime,
  Page,
  Permissions,
  PolicyDefinition,
  PurposeDefinition,
  Receipt,
  ReportedOutcome,
  Session,
  Verdict,
  VisitorState,
  WriteOptions,
  WriteResult,
} from './types.ts';
import { type VisitorSettings, Visitors } from './visitor.ts';
import type { ErasureReceipt, Join, Link, Policy, PublishedPolicy, Purpose, SavedPurposes } from './wire.ts';

/** The methods of SPEC.md section 2, once: the client sends their calls to gpd, the fake answers them from memory. */

export class Methods {
  readonly #sender: Sender;
  readonly #settings: VisitorSettings;
  readonly #calls: Calls;
  readonly #visitors: Visitors;

  constructor(sender: Sender, settings: VisitorSettings) {
    this.#sender = sender;
    this.#settings = settings;
    this.#calls = new Calls(sender, settings);
    this.#visitors = new Visitors(
      {
        fetchKeys: (name, options) =>
          this.#calls.read(call(name, 'stateKeys'), shapes.readStateKeys, options),
        refresh: (name, { text }, gpc, options) => {
          const body = { state: text, gpc: gpc || undefined };
          const refresh = call(name, 'refreshState', { body, secrets: [text] });
          return this.#calls.read(refresh, shapes.readRefreshed, options);
        },
        check: (name, principalId, purposes, options) =>
          this.#calls.checkMany(
            name,
            purposes.map((purpose) => ({ principalId, purpose })),
            options,
          ),
      },
      settings,
    );
  }

  /** Returns true only if the server's decision allows this processing. */
  async isAllowed(check: Check, options?: CallOptions): Promise<boolean> {
    return (await this.#calls.check('isAllowed', check, options)).allowed;
  }

  /** Returns the decision with its reason and proof. It is always truthy: check `allowed`, or call `isAllowed`. */
  canProcess(check: Check, options?: CallOptions): Promise<Decision> {
    return this.#calls.check('canProcess', check, options);
  }

  /** Returns up to 100 decisions of one snapshot, in the order of the checks. */
  async canProcessMany(checks: readonly Purposeful[], options?: CallOptions): Promise<Decision[]> {
    const name = 'canProcessMany';
    args.checkBatch(name, checks);
    this.#sender.begin(name, [checks]);
    return checks.length === 0 ? [] : this.#calls.checkMany(name, checks, options);
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
    this.#sender.begin('state', [principalId]);
    return this.#calls.ask('state', 'state', { body: { principalId }, secrets: [principalId] }, options);
  }

  /** Returns one page of a person's choices, newest first. */
  async history(principalId: string, page: Page = {}, options?: CallOptions): Promise<History> {
    args.checkPrincipal('history', principalId);
    this.#sender.begin('history', [principalId, page]);
    const { cursor, limit } = page;
    const details = { body: { principalId, cursor, limit }, secrets: [principalId] };
    return this.#calls.ask('history', 'history', details, options);
  }

  /** Yields all choices of a person, newest first; asks for the next page when it is needed. */
  async *historyAll(
    principalId: string,
    { limit }: { readonly limit?: number | undefined } = {},
    options?: CallOptions,
  ): AsyncGenerator<HistoryEvent, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: History = await this.history(principalId, { cursor, limit }, options);
      yield* page.events;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  readonly sessions: { create(principalId: string, options?: CallOptions): Promise<Session> } = {
    /** Creates a token for one person, valid for at most 15 minutes. Give it only to that person's browser. */
    create: async (principalId, options) => {
      const name = 'sessions.create';
      args.checkPrincipal(name, principalId);
      this.#sender.begin(name, [principalId]);
      return this.#calls.ask(name, name, { body: { principalId }, secrets: [principalId] }, options);
    },
  };

  /** Joins a browser with the account of a session: from then on each answers for both. */
  async join(session: string, browser: BrowserPrincipal, options?: CallOptions): Promise<Join> {
    args.checkText('join', 'session', session);
    args.checkPrincipal('join', browser?.principalId);
    args.checkText('join', 'principalSecret', browser.principalSecret);
    this.#sender.begin('join', [session, browser]);
    const { principalId, principalSecret } = browser;
    const secrets = [session, principalId, principalSecret];
    const body = { principalId, principalSecret };
    return this.#calls.ask('join', 'join', { body, token: session, secrets }, options);
  }

  /** Links the visit behind a transparency token with the person of a session. */
  async link(session: string, token: string, options?: CallOptions): Promise<Link> {
    args.checkText('link', 'session', session);
    args.checkText('link', 'token', token);
    this.#sender.begin('link', [session, token]);
    const details = { body: { token }, token: session, secrets: [session, token] };
    return this.#calls.ask('link', 'link', details, options);
  }

  /** Erases the consent record of the person of a session. */
  async erase(session: string, options?: CallOptions): Promise<ErasureReceipt> {
    args.checkText('erase', 'session', session);
    this.#sender.begin('erase', [session]);
    return this.#calls.ask('erase', 'erase', { body: {}, token: session, secrets: [session] }, options);
  }

  /** Returns a signed copy of an entry, for the person it is about. */
  async receipt(seq: number, options?: CallOptions): Promise<Receipt> {
    args.checkSeq('receipt', seq);
    this.#sender.begin('receipt', [seq]);
    return this.#calls.ask('receipt', 'receipt', { params: { seq } }, options);
  }

  /** Returns the proof of an entry as text, for `verifyProof` or an auditor. */
  async proof(seq: number, options?: CallOptions): Promise<string> {
    args.checkSeq('proof', seq);
    this.#sender.begin('proof', [seq]);
    return this.#calls.text(call('proof', 'proof', { params: { seq } }), options);
  }

  /** Returns the verdict of a visit. A browser must not deliver its own verdict. */
  async decision(requestId: string, options?: CallOptions): Promise<Verdict> {
    args.checkRequestId('decision', requestId);
    this.#sender.begin('decision', [requestId]);
    return this.#calls.ask('decision', 'decision', { params: { requestId } }, options, { requestId });
  }

  /**
   * Advises a checkout by the verdict of this visit, and never refuses. `no-verdict` if gpd has none of the last
   * 30 minutes or does not answer in time: the sale goes on without gpd.
   * @param requestId what the page sent; any value
   * @throws {ConsentError} invalid-request for a `deadlineMs` out of range, and nothing else
   */
  async checkout(
    requestId: unknown,
    { deadlineMs = 500, context, signal }: CheckoutOptions = {},
  ): Promise<CheckoutAdvice> {
    args.checkDeadline('checkout', deadlineMs);
    try {
      const verdict = await this.decision(requestId as string, { timeoutMs: deadlineMs, signal });
      return adviceOf(verdict, this.#settings.now(), context);
    } catch (error) {
      if (error instanceof ConsentError) return 'no-verdict';
      throw error;
    }
  }

  /** Reports the outcome of a decision once. Repeating it changes nothing; a different outcome is a conflict. */
  async reportOutcome(
    requestId: string,
    outcome: ReportedOutcome['outcome'],
    time: OutcomeTime = {},
    options?: CallOptions,
  ): Promise<ReportedOutcome> {
    const name = 'reportOutcome';
    args.checkReport(name, requestId, outcome);
    this.#sender.begin(name, [requestId, outcome, time]);
    const details = { params: { requestId }, body: { outcome, at: time.at } };
    return this.#calls.ask(name, name, details, options, { requestId, outcome });
  }

  /**
   * Returns who signed a request. Ask once for each: a nonce is used up by the first that asks. A request without
   * signature needs no call. If gpd cannot be asked, nobody is verified: `unverified`, `unavailable`.
   */
  async agent(request: SignedRequest, options: AgentOptions = {}): Promise<AgentAnswer> {
    const body = describeRequest(request, options);
    this.#sender.begin('agent', [request]);
    if (body === null) return UNSIGNED;
    try {
      const answer = await this.#calls.ask<Omit<AgentAnswer, 'error'>>('agent', 'agent', { body }, options);
      return { ...answer, error: null };
    } catch (error) {
      return this.#calls.undecided(error, unasked);
    }
  }

  /** Returns the purposes of the tenant. */
  async purposes(options?: CallOptions): Promise<readonly Purpose[]> {
    this.#sender.begin('purposes', []);
    const answer = await this.#calls.ask<{ purposes: readonly Purpose[] }>(
      'purposes',
      'purposes',
      {},
      options,
    );
    return answer.purposes;
  }

  /** Defines or changes purposes; needs a key of scope `operator`. */
  async savePurposes(
    purposes: readonly PurposeDefinition[],
    { material }: { readonly material?: boolean | undefined } = {},
    options?: CallOptions,
  ): Promise<SavedPurposes> {
    this.#sender.begin('savePurposes', [purposes, { material }]);
    return this.#calls.ask('savePurposes', 'savePurposes', { body: { purposes, material } }, options);
  }

  /** Returns the policy versions of the tenant. */
  async policies(options?: CallOptions): Promise<readonly Policy[]> {
    this.#sender.begin('policies', []);
    const answer = await this.#calls.ask<{ policies: readonly Policy[] }>(
      'policies',
      'policies',
      {},
      options,
    );
    return answer.policies;
  }

  /** Publishes the next policy version; needs a key of scope `operator`. */
  async publishPolicy(policy: PolicyDefinition, options?: CallOptions): Promise<PublishedPolicy> {
    this.#sender.begin('publishPolicy', [policy]);
    return this.#calls.ask('publishPolicy', 'publishPolicy', { body: policy }, options);
  }

  /** Returns the signed head of the tenant's log. */
  async checkpoint(options?: CallOptions): Promise<string> {
    this.#sender.begin('checkpoint', []);
    return this.#calls.text(call('checkpoint', 'checkpoint'), options);
  }

  /** Returns the key that verifies checkpoints and proofs. Pin it: store it where gpd cannot change it. */
  async vkey(options?: CallOptions): Promise<string> {
    this.#sender.begin('vkey', []);
    return (await this.#calls.text(call('vkey', 'vkey'), options)).trim();
  }

  /** Returns all entries of the log, one JSON value a line; at most 256 MiB. */
  async exportLog(options?: CallOptions): Promise<string> {
    this.#sender.begin('exportLog', []);
    return this.#calls.text(call('exportLog', 'exportLog'), options);
  }

  /** Returns what the cookie `gpd_consent` says, offline but for gpd's keys; null denies. */
  async readState(
    cookieHeader: string | null | undefined,
    options: CallOptions = {},
  ): Promise<VisitorState | null> {
    this.#sender.begin('readState', [cookieHeader]);
    return this.#visitors.readState(cookieHeader, options);
  }

  /** Like `readState`, but asks gpd to renew a cookie that is older than five minutes. */
  async currentState(
    cookieHeader: string | null | undefined,
    options: CallOptions = {},
  ): Promise<CurrentState> {
    this.#sender.begin('currentState', [cookieHeader]);
    return this.#visitors.currentState(cookieHeader, options);
  }

  /** Returns which purposes are allowed for the page that this request asks for. It heeds `Sec-GPC`. */
  async may(
    request: RequestLike,
    purposes: readonly string[],
    { principalId, ...options }: MayOptions = {},
  ): Promise<Permissions> {
    args.checkPurposes('may', purposes, principalId);
    this.#sender.begin('may', [request, purposes, { principalId }]);
    return this.#visitors.may(request, purposes, principalId, options);
  }

  /** Resolves if the server answers; the key is not checked. */
  async ping(options?: CallOptions): Promise<Health> {
    this.#sender.begin('ping', []);
    return this.#calls.ask('ping', 'ping', {}, options, { status: 'ok' });
  }

  /** Cancels running calls; later calls are refused. */
  async close(): Promise<void> {
    this.#sender.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #write(
    name: 'grant' | 'deny' | 'withdraw',
    write: ConsentGrant,
    options: WriteOptions = {},
  ): Promise<WriteResult> {
    args.checkWrite(name, write);
    const { idempotencyKey = randomUUID() } = options;
    args.checkIdempotencyKey(name, idempotencyKey);
    this.#sender.begin(name, [write]);
    const { principalId, purposes, policyVersion, gpc, overGpc } = write;
    const body = { principalId, purposes, policyVersion, gpc, overGpc };
    return this.#calls.ask(name, name, { body, idempotencyKey, secrets: [principalId] }, options);
  }
}

/** The interface of the client and the fake. Let your own code depend on it. */
export type Consent = Pick<Methods, keyof Methods>;
