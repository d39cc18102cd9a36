import { createHash } from 'node:crypto';
import { ConsentError, kindOfStatus } from './errors.ts';
import type { Check, ConsentGrant, Decision, HistoryEvent, PurposeState, WriteResult } from './types.ts';
import type { ProofRef, Purpose } from './wire.ts';

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
  readonly time: string;
  readonly expiresAt: string | null;
}

const GENESIS: ProofRef = { seq: 0, hash: '0'.repeat(64) };
const DAY_MS = 86_400_000;
const MAX_PURPOSES = 50;
const MAX_PAGE = 200;
const PURPOSE = /^[a-z0-9][a-z0-9-]{0,63}$/;

const entryHash = (seq: number): string => createHash('sha256').update(`fake entry ${seq}`).digest('hex');

export const refuse = (method: string, code: string, status: number): ConsentError =>
  new ConsentError(method, kindOfStatus(status), { code, status });

function historyOf({
  seq,
  purpose,
  choice,
  time,
  policyVersion,
  gpc,
  expiresAt,
  overGpc,
}: Event): HistoryEvent {
  const over = overGpc ? { overGpc } : {};
  const type = `consent.${choice}`;
  return { seq, type, purpose, time, policyVersion, gpc, source: 'backend', expiresAt, ...over };
}

export class FakeLog {
  readonly #now: () => number;
  #events: Event[] = [];
  readonly #ttlDays = new Map<string, number>();
  readonly #accounts = new Map<string, string>();
  readonly #erased = new Set<string>();
  /** Null: every purpose is known. */
  #purposes: readonly string[] | null = null;
  #entries = 0;
  #policyVersion = 0;
  /** Grants under an older policy are outdated. */
  #materialVersion = 0;
  readonly #policies = new Map<string, GpcPolicy>();
  /** The principals with a GPC signal, and the purposes that each granted without it since. */
  readonly #signals = new Map<string, Set<string>>();
  readonly #answers = new Map<string, { readonly request: string; readonly result: WriteResult }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  now(): string {
    return new Date(this.#now()).toISOString();
  }

  setPurposes(purposes: readonly string[]): void {
    this.#purposes = purposes;
  }

  purposes(): Purpose[] {
    const ids = this.#purposes ?? [...new Set(this.#events.map(({ purpose }) => purpose))];
    return ids.map((id) => ({
      id,
      title: id,
      description: '',
      lawfulBasis: 'consent',
      gpc: this.#policyOf(id),
      ttlDays: this.#ttlDays.get(id) ?? 180,
      banner: true,
    }));
  }

  definePurposes(list: readonly Partial<Purpose>[]): Purpose[] {
    for (const { id = '', gpc = 'opt-out', ttlDays = 180 } of list) {
      if (!PURPOSE.test(id)) throw refuse('savePurposes', 'invalid-request', 400);
      this.#policies.set(id, gpc as GpcPolicy);
      this.#ttlDays.set(id, ttlDays);
    }
    const ids = list.map(({ id = '' }) => id);
    this.#purposes = [...new Set([...this.purposes().map(({ id }) => id), ...ids])];
    return this.purposes();
  }

  /** Publishes a policy; a material one makes older grants outdated. */
  publish(version: number, isMaterial: boolean): ProofRef {
    this.#policyVersion = version;
    if (isMaterial) this.#materialVersion = version;
    this.#entries += 1;
    return { seq: this.#entries, hash: entryHash(this.#entries) };
  }

  setTtlDays(purpose: string, days: number): void {
    this.#ttlDays.set(purpose, days);
  }

  /** From then on the browser and the account answer for each other. */
  join(browser: string, account: string): void {
    this.#accounts.set(browser, account);
  }

  erase(principalId: string): number {
    const person = this.#personOf(principalId);
    const remaining = this.#events.filter((event) => this.#personOf(event.principalId) !== person);
    const count = this.#events.length - remaining.length;
    this.#events = remaining;
    this.#signals.delete(person);
    this.#erased.add(person);
    return count;
  }

  setGpcPolicy(purpose: string, policy: GpcPolicy): void {
    this.#policies.set(purpose, policy);
  }

  /** @throws {ConsentError} invalid-request, conflict */
  write(method: WriteMethod, write: ConsentGrant, idempotencyKey: string | undefined): WriteResult {
    const { principalId, purposes, policyVersion = this.#policyVersion, gpc, overGpc = false } = write;
    const isList = purposes.length <= MAX_PURPOSES && new Set(purposes).size === purposes.length;
    if (!isList || !purposes.every((purpose) => PURPOSE.test(purpose)))
      throw refuse(method, 'invalid-request', 400);
    if (!purposes.every((purpose) => this.#isKnown(purpose))) throw refuse(method, 'unknown-purpose', 422);
    if (overGpc && (gpc !== true || purposes.length !== 1)) throw refuse(method, 'invalid-request', 400);
    if (overGpc && this.#policyOf(purposes[0]) !== 'ask') throw refuse(method, 'unknown-purpose', 422);
    const request = JSON.stringify([method, principalId, purposes, write.policyVersion, gpc, write.overGpc]);
    const known = idempotencyKey === undefined ? undefined : this.#answers.get(idempotencyKey);
    if (known && known.request !== request) throw refuse(method, 'idempotency-conflict', 409);
    if (known) return known.result;

    this.#applySignal(method, write);
    if (method === 'grant') this.#erased.delete(this.#personOf(principalId));
    const entries = purposes.map((purpose) => {
      this.#entries += 1;
      const seq = this.#entries;
      const ref = { seq, hash: entryHash(seq) };
      const isSignal = method === 'deny' && gpc === true && this.#policyOf(purpose) !== 'ignore';
      const choice = isSignal ? 'gpc-opt-out' : CHOICE_OF[method];
      const isOut = this.#isOptedOut(principalId, purpose);
      const person = { principalId, purpose, choice, policyVersion, gpc: isOut, overGpc };
      const expiresAt = method === 'grant' ? this.#expiryOf(purpose) : null;
      this.#events.push({ ...person, time: this.now(), expiresAt, ...ref });
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
      policyVersion: proven?.policyVersion ?? this.#policyVersion,
      expiresAt: proven?.expiresAt ?? null,
      given: 'unknown',
      error: null,
    };
  }

  state(principalId: string): PurposeState[] {
    const personEvents = this.#eventsOf(principalId);
    return [...new Set(personEvents.map(({ purpose }) => purpose))].map((purpose) => {
      const { error: _error, ...decision } = this.decide({ principalId, purpose });
      const { choice = null, time: at = null } = this.#lastOf(principalId, purpose) ?? {};
      return { purpose, choice, at, ...decision, proof: decision.proof ?? GENESIS };
    });
  }

  /** Returns what this person's cookie says; `gpc`: under a signal of this request. */
  visitorState(principalId: string, gpc: boolean): { readonly purposes: string[]; readonly seq: number } {
    const events = this.#eventsOf(principalId);
    const purposes = [...new Set(events.map(({ purpose }) => purpose))].filter(
      (purpose) =>
        this.decide({ principalId, purpose }).allowed &&
        !(gpc && this.#isOverruledByGpc(purpose, this.#lastOf(principalId, purpose))),
    );
    return { purposes, seq: events.at(-1)?.seq ?? 0 };
  }

  /** Returns the events before the cursor, newest first. */
  history(principalId: string, cursor: string | undefined, limit: number) {
    const isPage = Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE;
    if (!isPage || !/^\d{1,16}$/.test(cursor ?? '0')) throw refuse('history', 'invalid-request', 400);
    const before = cursor === undefined ? Number.POSITIVE_INFINITY : Number(cursor);
    const olderEvents = this.#eventsOf(principalId)
      .filter((event) => event.seq < before)
      .reverse();
    const events = olderEvents.slice(0, limit).map(historyOf);
    const nextCursor = olderEvents.length > limit ? String(events.at(-1)?.seq ?? '') : null;
    return { principalId, events, nextCursor };
  }

  #policyOf(purpose: string | undefined): GpcPolicy {
    return this.#policies.get(purpose ?? '') ?? 'opt-out';
  }

  #lastOf(principalId: string, purpose: string): Event | undefined {
    return this.#eventsOf(principalId).findLast((event) => event.purpose === purpose);
  }

  #personOf(principalId: string): string {
    return this.#accounts.get(principalId) ?? principalId;
  }

  #eventsOf(principalId: string): Event[] {
    const person = this.#personOf(principalId);
    return this.#events.filter((event) => this.#personOf(event.principalId) === person);
  }

  #isKnown(purpose: string): boolean {
    return this.#purposes?.includes(purpose) ?? true;
  }

  #expiryOf(purpose: string): string | null {
    const days = this.#ttlDays.get(purpose);
    return days === undefined ? null : new Date(this.#now() + days * DAY_MS).toISOString();
  }

  /** True if a signal ends this choice: it heeds the signal, and was not made despite it. */
  #isOverruledByGpc(purpose: string, last: Event | undefined): boolean {
    const policy = this.#policyOf(purpose);
    return policy !== 'ignore' && !(policy === 'ask' && last?.overGpc === true);
  }

  #isOptedOut(principalId: string, purpose: string): boolean {
    const except = this.#signals.get(this.#personOf(principalId));
    return except !== undefined && !except.has(purpose);
  }

  #applySignal(method: WriteMethod, { principalId, purposes, gpc }: ConsentGrant): void {
    const person = this.#personOf(principalId);
    if (gpc === true) this.#signals.set(person, new Set());
    const except = this.#signals.get(person);
    if (gpc === false && method === 'grant') for (const purpose of purposes) except?.add(purpose);
  }

  #reasonOf(principalId: string, purpose: string, last: Event | undefined): string {
    if (!this.#isKnown(purpose)) return 'unknown-purpose';
    if (last === undefined && this.#erased.has(this.#personOf(principalId))) return 'erased';
    const isOut = this.#isOptedOut(principalId, purpose) && this.#isOverruledByGpc(purpose, last);
    if (isOut) return 'gpc-opt-out';
    if (last === undefined || last.choice === 'gpc-opt-out') return 'never-asked';
    const isOver = last.expiresAt !== null && Date.parse(last.expiresAt) <= this.#now();
    if (last.choice !== 'granted') return last.choice;
    if (isOver) return 'expired';
    return last.policyVersion < this.#materialVersion ? 'policy-outdated' : 'granted';
  }
}
