import { createHash } from 'node:crypto';
import { type AgentAnswer, UNSIGNED } from './agents.ts';
import type { Answer, Call, Sender } from './calls.ts';
import * as args from './check-args.ts';
import { ConsentError, type ErrorFacts, type ErrorKind } from './errors.ts';
import { FakeLog, type GpcPolicy, refuse, type WriteMethod } from './fake-log.ts';
import { FakeSigner } from './fake-signer.ts';
import { Methods } from './methods.ts';
import { checkCookieDomain } from './options.ts';
import type { OperationName } from './shapes.ts';
import { parseState, STATE_COOKIE } from './state-cookie.ts';
import type { Check, ConsentGrant, PolicyDefinition, ReportedOutcome, Verdict } from './types.ts';
import { VERSION } from './version.ts';
import { KIND_OF_STATUS, OPERATIONS, type OperationRow, type Policy } from './wire.ts';

export type { GpcPolicy } from './fake-log.ts';

export interface FakeOptions {
  readonly onUnavailable?: 'deny' | 'error' | undefined;
  /** Domain of the cookies that this fake returns. */
  readonly cookieDomain?: string | undefined;
  /** The clock of grants and cookies: milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
}

export interface FakeCall {
  readonly method: string;
  readonly args: readonly unknown[];
}

/** The body of a call, in which a method leaves out what was not given. */
type Body = ConsentGrant &
  Check &
  PolicyDefinition &
  ReportedOutcome & {
    readonly checks: readonly (Check & { readonly id: string })[];
    readonly cursor?: string;
    readonly limit?: number;
    readonly state: string;
    readonly token: string;
  };

/** Answers calls as a gpd would that holds what the fake was told. */
class FakeServer implements Sender {
  readonly calls: FakeCall[] = [];
  readonly log: FakeLog;
  readonly verdicts = new Map<string, Verdict>();
  readonly signer = new FakeSigner();
  readonly #now: () => number;
  readonly #outcomes = new Map<string, ReportedOutcome>();
  /** Principals by the token of a session. */
  readonly #sessions = new Map<string, string>();
  readonly #policies: Policy[] = [];
  agent: AgentAnswer = { ...UNSIGNED, status: 'unverified', reason: 'key-set-unknown' };
  isUnavailable = false;
  nextError: (ErrorFacts & { readonly kind: ErrorKind }) | null = null;
  #closed = false;

  constructor(now: () => number) {
    this.#now = now;
    this.log = new FakeLog(now);
  }

  begin(method: string, called: readonly unknown[]): void {
    if (this.#closed) throw new ConsentError(method, 'config', { code: 'closed' });
    this.calls.push({ method, args: called });
  }

  close(): void {
    this.#closed = true;
  }

  async send(call: Call): Promise<Answer> {
    if (this.nextError) {
      const { kind, ...facts } = this.nextError;
      this.nextError = null;
      throw new ConsentError(call.name, kind, facts);
    }
    if (this.isUnavailable) throw new ConsentError(call.name, 'network', { detail: 'refused' });
    const value = await this.#answers[call.operation](call, (call.body ?? {}) as Body);
    const { statuses }: OperationRow = OPERATIONS[call.operation];
    return { text: JSON.stringify(value), status: statuses[0] ?? 200, requestId: null };
  }

  malformed({ name }: Call, { status }: Answer): ConsentError {
    return new ConsentError(name, 'response', { status, detail: 'body' });
  }

  async sign(principalId: string, gpc: boolean): Promise<{ state: string; purposes: string[]; seq: number }> {
    const { purposes, seq } = this.log.visitorState(principalId, gpc);
    const state = await this.signer.sign(principalId, { purposes, seq, at: this.#now() });
    return { state, purposes, seq };
  }

  readonly #answers: Readonly<Record<OperationName, (call: Call, body: Body) => unknown>> = {
    canProcess: (_call, check) => this.log.decide(check),
    canProcessMany: (_call, { checks }) => ({
      results: checks.map((check) => ({ id: check.id, ...this.log.decide(check) })),
    }),
    grant: (call, body) => this.#write('grant', call, body),
    deny: (call, body) => this.#write('deny', call, body),
    withdraw: (call, body) => this.#write('withdraw', call, body),
    state: (_call, { principalId }) => ({
      principalId,
      subject: subjectOf(principalId),
      purposes: this.log.state(principalId),
    }),
    refreshState: async ({ name }, { state, gpc = false }) => {
      const principalId = this.signer.principalOf(parseState(state)?.subject ?? '');
      const current = principalId === undefined ? null : await this.sign(principalId, gpc);
      // gpd does not know a person who has never chosen.
      if (!current?.seq) throw refuse(name, 'no-data', 404);
      return current;
    },
    stateKeys: () => this.signer.jwks(),
    history: (_call, { principalId, cursor, limit = 50 }) => this.log.history(principalId, cursor, limit),
    'sessions.create': (_call, { principalId }) => {
      const token = `gpd_ps_fake${this.calls.length}`;
      this.#sessions.set(token, principalId);
      return { token, principalId, subject: subjectOf(principalId), expiresAt: this.#in15Minutes() };
    },
    join: (call, { principalId }) => {
      const account = this.#personOf(call);
      this.log.join(principalId, account);
      return { principalId: account, joined: principalId, joinedAt: this.log.now() };
    },
    link: (call, { token }) => {
      const principalId = this.#personOf(call);
      if (!this.verdicts.has(token)) throw refuse(call.name, 'unauthenticated', 401);
      return { principalId, requestId: token, linkedAt: this.log.now() };
    },
    erase: (call) => {
      const principalId = this.#personOf(call);
      const count = this.log.erase(principalId);
      return {
        receiptId: `era_fake${this.calls.length}`,
        tenant: 'fake',
        subject: subjectOf(principalId),
        requestedBy: 'subject',
        erasedAt: this.log.now(),
        scopes: [{ scope: 'consent', action: count > 0 ? 'erased' : 'none', count }],
        incomplete: false,
      };
    },
    agent: () => this.agent,
    receipt: ({ name }) => this.#missing(name, 'not-found'),
    proof: ({ name }) => this.#missing(name, 'not-found'),
    decision: (call) => this.#verdictOf(call),
    reportOutcome: (call, body) => {
      const { requestId } = this.#verdictOf(call);
      const stored = this.#outcomes.get(requestId) ?? {
        requestId,
        outcome: body.outcome,
        at: body.at ?? this.log.now(),
      };
      if (stored.outcome !== body.outcome || (body.at !== undefined && stored.at !== body.at))
        throw refuse(call.name, 'idempotency-conflict', 409);
      this.#outcomes.set(requestId, stored);
      return stored;
    },
    purposes: () => ({ purposes: this.log.purposes() }),
    savePurposes: (_call, body) => {
      const { purposes } = body as unknown as { readonly purposes: readonly { readonly id: string }[] };
      return { purposes: this.log.definePurposes(purposes), entries: [] };
    },
    policies: () => ({ policies: this.#policies }),
    publishPolicy: (_call, { text, material }) => {
      const sha256 = createHash('sha256').update(text).digest('hex');
      const version = this.#policies.length + 1;
      this.#policies.push({ version, sha256, material, publishedAt: this.log.now(), text });
      return { ...this.#policies[version - 1], ...this.log.publish(version, material) };
    },
    checkpoint: ({ name }) => this.#missing(name, 'not-found'),
    vkey: ({ name }) => this.#missing(name, 'not-found'),
    exportLog: ({ name }) => this.#missing(name, 'not-found'),
    ping: () => ({ status: 'ok', version: `fake ${VERSION}` }),
  };

  #missing(method: string, code: string): never {
    throw refuse(method, code, 404);
  }

  #write(method: WriteMethod, call: Call, body: Body): unknown {
    // A key that the method made itself is used once, so it needs no place in memory.
    return this.log.write(method, body, call.idempotencyKey);
  }

  #personOf({ name, token = '' }: Call): string {
    const principalId = this.#sessions.get(token);
    if (principalId === undefined) throw refuse(name, 'unauthenticated', 401);
    return principalId;
  }

  #verdictOf({ name, path }: Call): Verdict {
    const verdict = this.verdicts.get(path.split('/')[3] ?? '');
    return verdict ?? this.#missing(name, 'no-such-decision');
  }

  #in15Minutes(): string {
    return new Date(this.#now() + 900_000).toISOString();
  }
}

const subjectOf = (principalId: string): string =>
  createHash('sha256').update(`fake subject ${principalId}`).digest('base64url');

/** A fake of the client for your tests. It works in memory and allows only what was granted. */
export class FakeConsent extends Methods {
  readonly #server: FakeServer;

  constructor(options: FakeOptions = {}) {
    const { onUnavailable = 'deny', cookieDomain, now = Date.now } = options;
    const server = new FakeServer(now);
    super(server, { onUnavailable, timeoutMs: 2000, cookieDomain: checkCookieDomain(cookieDomain), now });
    this.#server = server;
  }

  /** All calls, in order. */
  get calls(): readonly FakeCall[] {
    return this.#server.calls;
  }

  /** A `Cookie` header as the browser of this person would send it now. Later it is as old as your clock says. */
  async cookieFor(principalId: string): Promise<string> {
    args.checkPrincipal('cookieFor', principalId);
    return `${STATE_COOKIE}=${(await this.#server.sign(principalId, false)).state}`;
  }

  /** Makes all further calls fail as if the server were down, or work again. */
  setUnavailable(unavailable: boolean): void {
    this.#server.isUnavailable = unavailable;
  }

  /** Makes the next call that reaches the server fail once. A kind that has one brings its status. */
  setNextError(kind: ErrorKind, facts: ErrorFacts = {}): void {
    const named = Object.entries(KIND_OF_STATUS).find(([, one]) => one === kind)?.[0];
    const furtherStatuses: Partial<Record<ErrorKind, number>> = { server: 500, 'invalid-request': 400 };
    const status = named === undefined ? (furtherStatuses[kind] ?? null) : Number(named);
    this.#server.nextError = { status: kind === 'timeout' ? null : status, ...facts, kind };
  }

  /** Sets the only purposes that exist: others answer `unknown-purpose`. Without it every purpose is known. */
  setPurposes(purposes: readonly string[]): void {
    this.#server.log.setPurposes(purposes);
  }

  /** Sets the days after which a grant of this purpose expires by the fake's clock; without it never. */
  setTtlDays(purpose: string, days: number): void {
    this.#server.log.setTtlDays(purpose, days);
  }

  /** Sets the effect of Global Privacy Control on a purpose; `opt-out` if it was not set. */
  setGpcPolicy(purpose: string, policy: GpcPolicy): void {
    this.#server.log.setGpcPolicy(purpose, policy);
  }

  /** Sets what `agent` answers about signed requests; without it their keys are not known. */
  setAgent(answer: Partial<AgentAnswer>): void {
    this.#server.agent = { ...UNSIGNED, status: 'verified', ...answer };
  }

  /** Sets the verdict that `decision` returns for this request. */
  setDecision(requestId: string, verdict: Partial<Verdict>): void {
    this.#server.verdicts.set(requestId, {
      class: 'human',
      reason: 'ok',
      visitorId: null,
      confidence: 0,
      suspectScore: null,
      rules: [],
      policyVersion: '1',
      decidedAt: this.#server.log.now(),
      restricted: false,
      ...verdict,
      requestId,
    });
  }
}
