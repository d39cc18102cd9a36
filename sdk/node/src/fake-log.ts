import { createHash } from 'node:crypto';
import { ConsentError } from './errors.ts';
import type {
  Check,
  ConsentGrant,
  Decision,
  HistoryEvent,
  ProofRef,
  PurposeState,
  WriteResult,
} from './types.ts';

/** Choices, Global Privacy Control and Idempotency-Keys of a fake, by the rules of the server. */

export type WriteMethod = 'grant' | 'deny' | 'withdraw';
/** Effect of Global Privacy Control on a purpose. */
export type GpcPolicy = 'opt-out' | 'ask' | 'ignore';

type Choice = 'granted' | 'denied' | 'withdrawn' | 'gpc-opt-out';

const CHOICE_OF: Readonly<Record<WriteMethod, Choice>> = {
  grant: 'granted',
  deny: 'denied',
  withdraw: 'withdrawn',
};

interface Event extends ProofRef {
  readonly principalId: string;
  readonly purpose: string;
  readonly choice: Choice;
  readonly policyVersion: number;
  readonly gpc: boolean;
  readonly overGpc: boolean;
}

const GENESIS: ProofRef = { seq: 0, hash: '0'.repeat(64) };
/** A fixed time, so that no test depends on the date. */
export const TIME = '2026-01-01T00:00:00.000Z';

const entryHash = (seq: number): string => createHash('sha256').update(`fake entry ${seq}`).digest('hex');

const refuse = (method: string, code: string, status: number): ConsentError =>
  new ConsentError(method, status === 409 ? 'conflict' : 'invalid-request', { code, status });

function historyOf({ seq, purpose, choice, policyVersion, gpc, overGpc }: Event): HistoryEvent {
  const over = overGpc ? { overGpc } : {};
  const type = `consent.${choice}`;
  return { seq, type, purpose, time: TIME, policyVersion, gpc, source: 'backend', expiresAt: null, ...over };
}

export class FakeLog {
  readonly #events: Event[] = [];
  readonly #policies = new Map<string, GpcPolicy>();
  /** The principals with a GPC signal, and the purposes that each granted without it since. */
  readonly #signals = new Map<string, Set<string>>();
  readonly #answers = new Map<string, { readonly request: string; readonly result: WriteResult }>();

  setGpcPolicy(purpose: string, policy: GpcPolicy): void {
    this.#policies.set(purpose, policy);
  }

  /** @throws {ConsentError} invalid-request, conflict */
  write(method: WriteMethod, write: ConsentGrant, idempotencyKey: string | undefined): WriteResult {
    const { principalId, purposes, policyVersion = 0, gpc, overGpc = false } = write;
    if (overGpc && (gpc !== true || purposes.length !== 1)) throw refuse(method, 'invalid-request', 400);
    if (overGpc && this.#policyOf(purposes[0]) !== 'ask') throw refuse(method, 'unknown-purpose', 422);
    const request = JSON.stringify([method, principalId, purposes, write.policyVersion, gpc, write.overGpc]);
    const known = idempotencyKey === undefined ? undefined : this.#answers.get(idempotencyKey);
    if (known && known.request !== request) throw refuse(method, 'idempotency-conflict', 409);
    if (known) return known.result;

    this.#applySignal(method, write);
    const entries = purposes.map((purpose) => {
      const seq = this.#events.length + 1;
      const ref = { seq, hash: entryHash(seq) };
      const isSignal = method === 'deny' && gpc === true && this.#policyOf(purpose) !== 'ignore';
      const choice = isSignal ? 'gpc-opt-out' : CHOICE_OF[method];
      const isOut = this.#isOptedOut(principalId, purpose);
      this.#events.push({ principalId, purpose, choice, policyVersion, gpc: isOut, overGpc, ...ref });
      return { purpose, ...ref };
    });
    const { seq, hash } = entries.at(-1) ?? GENESIS;
    const result = { entries, seq, hash };
    if (idempotencyKey !== undefined) this.#answers.set(idempotencyKey, { request, result });
    return result;
  }

  decide({ principalId, purpose }: Check): Decision {
    const last = this.#lastOf(principalId, purpose);
    const reason = this.#reasonOf(principalId, purpose, last);
    const proven = reason === 'never-asked' ? undefined : last;
    const { seq, hash } = proven ?? this.#events.at(-1) ?? GENESIS;
    return {
      allowed: reason === 'granted',
      reason,
      proof: { seq, hash },
      policyVersion: proven?.policyVersion ?? 0,
      expiresAt: null,
      given: 'unknown',
      error: null,
    };
  }

  state(principalId: string): PurposeState[] {
    const personEvents = this.#events.filter((event) => event.principalId === principalId);
    return [...new Set(personEvents.map(({ purpose }) => purpose))].map((purpose) => {
      const { error: _error, ...decision } = this.decide({ principalId, purpose });
      const choice = this.#lastOf(principalId, purpose)?.choice ?? null;
      return { purpose, choice, at: TIME, ...decision, proof: decision.proof ?? GENESIS };
    });
  }

  /** Returns what this person's cookie says; `gpc`: under a signal of this request. */
  visitorState(principalId: string, gpc: boolean): { readonly purposes: string[]; readonly seq: number } {
    const events = this.#events.filter((event) => event.principalId === principalId);
    const purposes = [...new Set(events.map(({ purpose }) => purpose))].filter(
      (purpose) =>
        this.decide({ principalId, purpose }).allowed &&
        !(gpc && this.#isOverruledByGpc(purpose, this.#lastOf(principalId, purpose))),
    );
    return { purposes, seq: events.at(-1)?.seq ?? 0 };
  }

  /** Returns the events before the cursor, newest first. */
  history(principalId: string, cursor: string | undefined, limit: number) {
    const before = cursor === undefined ? Number.POSITIVE_INFINITY : Number(cursor);
    const olderEvents = this.#events
      .filter((event) => event.principalId === principalId && event.seq < before)
      .reverse();
    const events = olderEvents.slice(0, limit).map(historyOf);
    const nextCursor = olderEvents.length > limit ? String(events.at(-1)?.seq ?? '') : null;
    return { principalId, events, nextCursor };
  }

  #policyOf(purpose: string | undefined): GpcPolicy {
    return this.#policies.get(purpose ?? '') ?? 'opt-out';
  }

  #lastOf(principalId: string, purpose: string): Event | undefined {
    return this.#events.findLast((event) => event.principalId === principalId && event.purpose === purpose);
  }

  /** True if a signal ends this choice: it heeds the signal, and was not made despite it. */
  #isOverruledByGpc(purpose: string, last: Event | undefined): boolean {
    const policy = this.#policyOf(purpose);
    return policy !== 'ignore' && !(policy === 'ask' && last?.overGpc === true);
  }

  #isOptedOut(principalId: string, purpose: string): boolean {
    const except = this.#signals.get(principalId);
    return except !== undefined && !except.has(purpose);
  }

  #applySignal(method: WriteMethod, { principalId, purposes, gpc }: ConsentGrant): void {
    if (gpc === true) this.#signals.set(principalId, new Set());
    const except = this.#signals.get(principalId);
    if (gpc === false && method === 'grant') for (const purpose of purposes) except?.add(purpose);
  }

  #reasonOf(principalId: string, purpose: string, last: Event | undefined): string {
    const isOut = this.#isOptedOut(principalId, purpose) && this.#isOverruledByGpc(purpose, last);
    if (isOut) return 'gpc-opt-out';
    return last === undefined || last.choice === 'gpc-opt-out' ? 'never-asked' : last.choice;
  }
}
