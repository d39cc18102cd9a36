import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ConsentEvent,
  decideConsent,
  joinStates,
  type PrincipalState,
  type Reason,
} from '../../src/consent/decide.ts';
import type { GpcPolicy } from '../../src/schema/gpc.ts';
import { createFirstPurpose } from '../../src/tenants/purposes.ts';
import type { ConsentRules } from '../../src/tenants/tenant.ts';
import { NOW } from '../support/make.ts';

const HEAD = { seq: 99, hash: 'ff'.repeat(32) };
const OWN_PROOF = { seq: 7, hash: '07'.repeat(32) };

const GPC: Readonly<Record<string, GpcPolicy>> = { ads: 'opt-out', orders: 'ignore', news: 'ask' };
const places = { definition: 3, materialSince: 3, optOutUntil: 2, askUntil: 2 };

const rules: ConsentRules = {
  termsOf: (id) => GPC[id] && { ...createFirstPurpose(), id, gpc: GPC[id], ...places },
  currentVersion: 5,
  materialVersion: 3,
  deniesDoubted: true,
};

const createEvent = (over: Partial<ConsentEvent> = {}): ConsentEvent => ({
  ...OWN_PROOF,
  choice: 'granted',
  policyVersion: 3,
  expiresAt: NOW + 1,
  overGpc: false,
  given: null,
  doubtSeq: null,
  at: NOW,
  definition: 3,
  ...over,
});

const createState = (over: Partial<PrincipalState> = {}): PrincipalState => ({
  erased: false,
  gpc: false,
  withheld: false,
  event: createEvent(),
  head: HEAD,
  ...over,
});

const reasonFor = (state: PrincipalState, purpose = 'ads', at = NOW): Reason =>
  decideConsent(purpose, state, rules, at).reason;

/** Each by itself, with nothing that comes before it in the order. */
const CASES: readonly (readonly [Reason, string, PrincipalState])[] = [
  ['unknown-purpose', 'nobody-defined-it', createState()],
  ['erased', 'ads', createState({ erased: true })],
  ['gpc-opt-out', 'ads', createState({ gpc: true })],
  ['withdrawn', 'ads', createState({ event: createEvent({ choice: 'withdrawn' }) })],
  ['denied', 'ads', createState({ event: createEvent({ choice: 'denied' }) })],
  ['expired', 'ads', createState({ event: createEvent({ expiresAt: NOW }) })],
  ['doubted', 'ads', createState({ event: createEvent({ given: 'automation' }) })],
  ['policy-outdated', 'ads', createState({ event: createEvent({ policyVersion: 2 }) })],
  ['never-asked', 'ads', createState({ event: null })],
  ['granted', 'ads', createState()],
];

describe('decideConsent', () => {
  it.each(CASES)(
    '%s: by itself, proven by the entry, or by the head of the log',
    (reason, purpose, state) => {
      const decision = decideConsent(purpose, state, rules, NOW);
      const byHead = ['unknown-purpose', 'erased', 'never-asked'].includes(reason);
      expect(decision).toMatchObject({
        reason,
        allowed: reason === 'granted',
        expiresAt: reason === 'granted' ? NOW + 1 : null,
        proof: byHead ? HEAD : OWN_PROOF,
        policyVersion: byHead ? rules.currentVersion : state.event?.policyVersion,
      });
    },
  );

  it('the first match wins', () => {
    const everything = createState({ erased: true, gpc: true, event: createEvent({ choice: 'withdrawn' }) });
    expect(reasonFor(everything, 'nobody-defined-it')).toBe('unknown-purpose');
    expect(reasonFor(everything)).toBe('erased');
    expect(reasonFor({ ...everything, erased: false })).toBe('gpc-opt-out');
    expect(reasonFor({ ...everything, erased: false, gpc: false })).toBe('withdrawn');
    const outdated = createEvent({ choice: 'denied', expiresAt: NOW, policyVersion: 1 });
    expect(reasonFor(createState({ event: outdated }))).toBe('denied');
    expect(reasonFor(createState({ event: { ...outdated, choice: 'granted' } }))).toBe('expired');
    const live = { ...outdated, choice: 'granted', expiresAt: NOW + 1 } as const;
    expect(reasonFor(createState({ event: { ...live, given: 'agent' } }))).toBe('doubted');
    expect(reasonFor(createState({ event: live }))).toBe('policy-outdated');
  });

  it('a GPC signal without an entry of its own is proven by the head', () => {
    const decision = decideConsent('ads', createState({ gpc: true, event: null }), rules, NOW);
    expect(decision).toMatchObject({ allowed: false, reason: 'gpc-opt-out', proof: HEAD, policyVersion: 5 });
  });

  it.each<[why: string, reason: Reason, purpose: string, over: Partial<ConsentEvent> | null]>([
    ['says no before anything was said', 'gpc-opt-out', 'news', null],
    ['says no to a yes from before', 'gpc-opt-out', 'news', {}],
    ['says no to a refusal', 'gpc-opt-out', 'news', { choice: 'denied' }],
    ['is overruled by a yes over it', 'granted', 'news', { overGpc: true }],
    ['is overruled as long as that yes lasts', 'expired', 'news', { overGpc: true, expiresAt: NOW }],
    ['is overruled until the policy changes', 'policy-outdated', 'news', { overGpc: true, policyVersion: 2 }],
    ['is never overruled where the policy is opt-out', 'gpc-opt-out', 'ads', { overGpc: true }],
  ])('under the policy ask a signal %s', (_why, reason, purpose, over) => {
    const state = createState({ gpc: true, event: over && createEvent(over) });
    const decision = decideConsent(purpose, state, rules, NOW);
    expect(decision).toMatchObject({ reason, overGpc: reason === 'granted' });
  });

  it('what only the signal said is no choice, once the signal is gone', () => {
    const event = createEvent({ choice: 'gpc-opt-out', expiresAt: null });
    expect(reasonFor(createState({ gpc: false, event }))).toBe('never-asked');
  });

  it('a doubt never turns a no into a yes, and without `deny` it changes no answer', () => {
    const event = fc.record({
      seq: fc.nat(),
      hash: fc.constant('aa'),
      choice: fc.constantFrom('granted', 'denied', 'withdrawn', 'gpc-opt-out'),
      policyVersion: fc.nat(5),
      expiresAt: fc.option(fc.integer({ min: NOW - 1, max: NOW + 1 })),
      overGpc: fc.boolean(),
      given: fc.constantFrom('person', null),
      doubtSeq: fc.constant(null),
    }) as fc.Arbitrary<ConsentEvent>;
    const purposes = fc.constantFrom('ads', 'orders', 'news', 'nobody-defined-it');
    const doubts = fc.constantFrom('agent', 'automation');
    fc.assert(
      fc.property(
        fc.option(event),
        fc.boolean(),
        fc.boolean(),
        purposes,
        doubts,
        fc.boolean(),
        (event, erased, gpc, purpose, givenBy, deniesDoubted) => {
          const decide = (one: ConsentEvent | null) =>
            decideConsent(
              purpose,
              { erased, gpc, withheld: false, event: one, head: HEAD },
              { ...rules, deniesDoubted: deniesDoubted },
              NOW,
            );
          const [before, after] = [decide(event), decide(event && { ...event, given: givenBy, doubtSeq: 9 })];
          expect(after.allowed && !before.allowed).toBe(false);
          if (!deniesDoubted) expect({ ...after, given: '' }).toEqual({ ...before, given: '' });
        },
      ),
    );
  });
});

/** PostgreSQL returns the rows of those who are joined in an order of its choosing. */
it('the state of those who are joined depends on no order', () => {
  const event = fc.record({
    choice: fc.constantFrom('granted' as const, 'denied' as const),
    at: fc.constantFrom(NOW, NOW + 1, NOW + 5000),
    seq: fc.nat(5),
  });
  const state = fc.record({
    ...{ erased: fc.boolean(), gpc: fc.boolean(), withheld: fc.boolean() },
    event: fc.option(event),
  });
  const people = fc.uniqueArray(state, {
    minLength: 2,
    maxLength: 4,
    selector: (one) => one.event?.seq ?? -1,
  });
  const shuffled = people.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
  );
  fc.assert(
    fc.property(shuffled, (orders) => {
      const [one, other] = orders.map((list) => {
        const [first, ...rest] = list.map((known) =>
          createState({ ...known, event: known.event && createEvent(known.event) }),
        );
        return joinStates(first as PrincipalState, ...rest);
      });
      expect(one).toEqual(other);
    }),
  );
});
