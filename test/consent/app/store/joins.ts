import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadLastChoices } from '../../../../src/consent/import-store.ts';
import { joinedRefs, joinPrincipals } from '../../../../src/consent/join-store.ts';
import { createConsentStateReader } from '../../../../src/consent/state-store.ts';
import type { Database } from '../../../../src/db/engine.ts';
import { rowsOf } from '../../../../src/db/sql.ts';
import type { Tenant } from '../../../../src/tenants/tenant.ts';
import { type NotedStatement, noteStatements } from '../../../support/database.ts';
import { NOW } from '../../../support/make.ts';
import { shredPrincipal } from '../../../support/shred-principal.ts';
import {
  addLog,
  append,
  createAppend,
  createAppender,
  expectWhole,
  macOf,
  type Nodes,
  stateOf,
  WRAP_KEY,
} from './fixture.ts';

/** Three devices and an account, in any order of joins, choices, signals and erasures, against a model that reads as the rule. */

const ACCOUNT = 'account';
const PEOPLE = [ACCOUNT, 'laptop', 'phone', 'tablet'] as const;
const PURPOSES = ['ads', 'device-identification'] as const;
type Person = (typeof PEOPLE)[number];

interface Choice {
  readonly granted: boolean;
  readonly at: number;
  readonly seq: number;
}
/** The newer second counts; within one the refusal, and of two alike the later entry. */
function isNewer(one: Choice, other: Choice): boolean {
  const [second, otherSecond] = [one, other].map(({ at }) => Math.floor(at / 1000)) as [number, number];
  if (second !== otherSecond) return second > otherSecond;
  return one.granted === other.granted ? one.seq > other.seq : other.granted;
}

/** Last choices, purposes under a signal, and refusals that outlive an erased record. */
const createPerson = (isErased = false) => ({
  choices: new Map<string, Choice>(),
  optedOut: new Set<string>(),
  withheld: new Set<string>(),
  isKnown: isErased,
  isErased,
  isJoined: false,
});

/** A person is all principals that are joined: the newest choice of any counts, and each signal and withheld purpose. */
function createModel() {
  const known = new Map(PEOPLE.map((person) => [person, createPerson()]));
  const of = (person: Person) => known.get(person) as ReturnType<typeof createPerson>;
  const groupOf = (person: Person) =>
    of(person).isJoined ? PEOPLE.filter((one) => of(one).isJoined) : [person];
  return {
    join: (person: Person) =>
      [person, ACCOUNT].map((one) => Object.assign(of(one as Person), { isJoined: true, isKnown: true })),
    choose(person: Person, purpose: string, choice: Choice, gpc: boolean | undefined) {
      of(person).choices.set(purpose, choice);
      of(person).isKnown = true;
      if (gpc === true) of(person).optedOut = new Set(PURPOSES);
      if (choice.granted) of(person).isErased = false;
      for (const one of choice.granted ? groupOf(person).map(of) : []) {
        one.withheld.delete(purpose);
        if (gpc === false) one.optedOut.delete(purpose);
      }
    },
    erase(person: Person) {
      const before = groupOf(person).map((one) => [one, structuredClone(of(one))] as const);
      for (const [stayer] of before.filter(([one]) => one !== person))
        for (const [one, leaver] of before.filter(([other]) => other !== stayer))
          if (person === ACCOUNT || one === person) keepRefusals(of(stayer), leaver);
      if (person === ACCOUNT) for (const [one] of before) of(one).isJoined = false;
      known.set(person, createPerson(of(person).isKnown));
    },
    expected(person: Person, purpose: string) {
      const group = groupOf(person).map(of);
      const choices = group.flatMap(({ choices: all }) => all.get(purpose) ?? []);
      const newest = choices.find((one) => choices.every((other) => one === other || isNewer(one, other)));
      return {
        erased: group.some(({ isErased }) => isErased) && !(group.length > 1 && newest?.granted === true),
        gpc: group.some(({ optedOut }) => optedOut.has(purpose)),
        withheld: group.some(({ withheld }) => withheld.has(purpose)),
        seq: newest?.seq,
      };
    },
  };
}

function keepRefusals(stayer: ReturnType<typeof createPerson>, leaver: typeof stayer): void {
  for (const [purpose, refusal] of leaver.choices) {
    const choice = stayer.choices.get(purpose);
    if (choice?.granted && !refusal.granted && isNewer(refusal, choice)) stayer.withheld.add(purpose);
  }
  for (const purpose of leaver.withheld) stayer.withheld.add(purpose);
  for (const purpose of leaver.optedOut) stayer.optedOut.add(purpose);
}

const tenantOf = (kid: string): Tenant =>
  ({ kid, stateMac: macOf(kid), principalWrap: WRAP_KEY, webhooksFor: () => [] }) as unknown as Tenant;

const join = (database: Database, kid: string, browser: Person, now: number) =>
  joinPrincipals(database, tenantOf(kid), {
    account: { ref: `ref-${ACCOUNT}`, id: ACCOUNT },
    browser: { ref: `ref-${browser}`, id: browser },
    actorRef: 'ref-of-a-person',
    now,
  });

const person = fc.constantFrom(...PEOPLE);
const step = fc.record({
  kind: fc.constantFrom('grant', 'grant', 'deny', 'withdraw', 'signal', 'join', 'join', 'erase'),
  person,
  purpose: fc.constantFrom(...PURPOSES),
  gpc: fc.constantFrom(undefined, false),
  node: fc.constantFrom(0, 1),
  later: fc.constantFrom(0, 300, 1000, 5000),
});

/** A joined browser without a choice leaves a tombstone, though its account was erased before. */
const ERASED_AFTER_ACCOUNT = (['join tablet', 'erase account', 'erase tablet', 'grant laptop'] as const).map(
  (text) => {
    const [kind, person] = text.split(' ') as ['join' | 'erase' | 'grant', Person];
    return { kind, person, purpose: 'ads', gpc: undefined, node: 0, later: 0 } as const;
  },
);

const CHOICES = { grant: 'granted', deny: 'denied', withdraw: 'withdrawn', signal: 'gpc-opt-out' } as const;
let runs = 0;

async function run(at: Nodes, steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]) {
  runs += 1;
  const kid = await addLog(at.db, `joined-${runs}`);
  const nodes = [at.db, at.other] as const;
  const appenders = nodes.map(createAppender);
  const model = createModel();
  let now = NOW;
  for (const one of steps) {
    now += one.later;
    const [database, appender] = [nodes[one.node] ?? at.db, appenders[one.node]];
    if (one.kind === 'join') {
      if (one.person === ACCOUNT) continue;
      await join(database, kid, one.person, now);
      model.join(one.person);
    } else if (one.kind === 'erase') {
      const target = { kid, principal: `ref-${one.person}`, principalId: one.person };
      const keys = { wrapKey: WRAP_KEY, stateMac: macOf(kid), notify: () => [] };
      await shredPrincipal(database, { ...target, ...keys }, now);
      model.erase(one.person);
    } else {
      const choice = CHOICES[one.kind as keyof typeof CHOICES];
      const gpc = one.kind === 'signal' ? true : one.kind === 'grant' ? one.gpc : undefined;
      const detail = { policyVersion: 2, gpc: gpc === true, source: 'backend', expiresAt: null } as const;
      const entries = [{ purpose: one.purpose, choice, detail }];
      const write = { choice, principalId: one.person, gpc, now, entries };
      const answer = await append(appender!, createAppend(kid, write));
      const seq = answer.entries[0]?.seq ?? -1;
      model.choose(one.person, one.purpose, { granted: one.kind === 'grant', at: now, seq }, gpc);
    }
    const pairs = PEOPLE.flatMap((principal) => PURPOSES.map((purpose) => ({ principal, purpose })));
    const reader = createConsentStateReader(nodes[1 - one.node] ?? at.db);
    const states = await Promise.all(
      pairs.map(({ principal, purpose }) =>
        reader.read({ kid, principal: `ref-${principal}`, purpose, mac: macOf(kid) }),
      ),
    );
    expect(
      states.map(({ erased, gpc, withheld, event }, i) => ({
        ...pairs[i],
        erased,
        gpc,
        withheld,
        seq: event?.seq,
      })),
    ).toEqual(pairs.map((pair) => ({ ...pair, ...model.expected(pair.principal, pair.purpose) })));
  }
  await expectWhole(at.db, kid);
}

/** Notes the statements of this database that ask for all of an account, in transactions too. */
function notePrincipals(database: Database) {
  const noted: NotedStatement[] = [];
  const note = (statement: NotedStatement): void => {
    if (/^(select|with).*\baccount["`]? = /is.test(statement.sql)) noted.push(statement);
  };
  const end = noteStatements(database.read, note);
  const watched: Database = {
    ...database,
    transaction: (work, options) =>
      database.transaction((tx) => {
        const endTx = noteStatements(tx, note);
        return work(tx).finally(endTx);
      }, options),
  };
  return { noted, watched, end };
}

export function joinsContract(at: Nodes): void {
  describe('an account and the browsers that are joined with it', () => {
    it('are found by an index, without a look at all other people of the tenant', async () => {
      const kid = await addLog(at.db, 'joined-plans');
      const { noted, watched, end } = notePrincipals(at.db);
      const appender = createAppender(watched);
      await append(appender, createAppend(kid, { principalId: 'laptop' }));
      await join(watched, kid, 'laptop', NOW);
      await append(appender, createAppend(kid, { principalId: 'laptop', now: NOW + 1000, gpc: false }));
      await stateOf(watched, kid, 'laptop');
      await joinedRefs(watched, { kid, stateMac: macOf(kid) }, 'ref-laptop');
      const imported = { recordedAt: NOW, evidence: undefined };
      const record = {
        principal: 'ref-laptop',
        isGrant: true,
        now: NOW,
        imported,
        stateMac: macOf(kid),
        entries: [{ purpose: 'ads' }],
      };
      await loadLastChoices(watched.read, kid, [record]);
      const target = { kid, principal: 'ref-laptop', principalId: 'laptop' };
      const keys = { wrapKey: WRAP_KEY, stateMac: macOf(kid), notify: () => [] };
      await shredPrincipal(watched, { ...target, ...keys }, NOW);
      end();
      const explain = at.db.kind === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
      const plans = await at.db.transaction((tx) =>
        Promise.all(
          noted.map(async ({ sql, bindings }) => {
            const text = sql.replace(/\?/g, at.db.kind === 'sqlite' ? '?' : '\\?').replace(/\$\d+/g, '?');
            return JSON.stringify(rowsOf(await tx.raw(`${explain} ${text}`, bindings as never)));
          }),
        ),
      );
      expect(plans.length).toBeGreaterThan(5);
      expect(plans.filter((plan) => !plan.includes('consent_principals_account'))).toEqual([]);
    });

    it('answer as one person, in whatever order', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), (steps) => run(at, steps)),
        // Both read and write the same; PostgreSQL lets two nodes meet in it.
        { numRuns: at.db.kind === 'sqlite' ? 8 : 3, examples: [[ERASED_AFTER_ACCOUNT]] },
      );
    });
  });
}
