import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadLastChoices } from '../../../../src/consent/import-store.ts';
import { joinedRefs, joinPrincipals } from '../../../../src/consent/join-store.ts';
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
interface Known {
  choices: Map<string, Choice>;
  gpc: boolean;
  except: Set<string>;
  withheld: Set<string>;
  isErased: boolean;
  isJoined: boolean;
}

const nobody = (): Known => ({
  choices: new Map(),
  gpc: false,
  except: new Set(),
  withheld: new Set(),
  isErased: false,
  isJoined: false,
});

/** The newer second counts; within one the refusal, and of two alike the later entry. */
const rank = ({ at, granted, seq }: Choice): readonly number[] => [
  Math.floor(at / 1000),
  granted ? 0 : 1,
  seq,
];
const isNewer = (one: Choice, other: Choice): boolean => {
  const i = rank(one).findIndex((part, place) => part !== rank(other)[place]);
  return i >= 0 && (rank(one)[i] ?? 0) > (rank(other)[i] ?? 0);
};
const newestOf = (choices: readonly Choice[]): Choice | undefined =>
  choices.reduce<Choice | undefined>((best, one) => (best && !isNewer(one, best) ? best : one), undefined);

/** A person is all principals that are joined: the newest choice of any counts, and a signal or a withheld purpose of any. */
function createModel() {
  const known = new Map<Person, Known>(PEOPLE.map((person) => [person, nobody()]));
  const of = (person: Person): Known => known.get(person) as Known;
  const groupOf = (person: Person): readonly Person[] =>
    of(person).isJoined ? PEOPLE.filter((one) => of(one).isJoined) : [person];
  const isOut = ({ gpc, except }: Known, purpose: string): boolean => gpc && !except.has(purpose);
  return {
    of,
    groupOf,
    choose(person: Person, purpose: string, choice: Choice, gpc: boolean | undefined) {
      const state = of(person);
      state.choices.set(purpose, choice);
      if (gpc === true) Object.assign(state, { gpc: true, except: new Set() });
      if (!choice.granted) return;
      state.isErased = false;
      for (const one of groupOf(person).map(of)) {
        one.withheld.delete(purpose);
        if (gpc === false && one.gpc) one.except.add(purpose);
      }
    },
    erase(person: Person) {
      const group = groupOf(person);
      const isWhole = person === ACCOUNT;
      const before = new Map(group.map((one) => [one, structuredClone(of(one))]));
      for (const one of group.filter((other) => other !== person)) {
        const leavers = group.filter((other) => other !== one && (isWhole || other === person));
        for (const leaver of leavers.map((other) => before.get(other) as Known))
          keepRefusals(of(one), leaver);
        if (isWhole) of(one).isJoined = false;
      }
      const wasKnown = of(person).choices.size > 0 || of(person).isJoined;
      known.set(person, { ...nobody(), isErased: of(person).isErased || wasKnown });
    },
    expected(person: Person, purpose: string) {
      const group = groupOf(person).map(of);
      const newest = newestOf(group.flatMap(({ choices }) => choices.get(purpose) ?? []));
      return {
        erased: group.some(({ isErased }) => isErased) && !(group.length > 1 && newest?.granted === true),
        gpc: group.some((one) => isOut(one, purpose)),
        withheld: group.some(({ withheld }) => withheld.has(purpose)),
        seq: newest?.seq,
      };
    },
  };
}

function keepRefusals(stayer: Known, leaver: Known): void {
  for (const [purpose, choice] of stayer.choices) {
    const refusal = leaver.choices.get(purpose);
    if (choice.granted && refusal && !refusal.granted && isNewer(refusal, choice))
      stayer.withheld.add(purpose);
  }
  for (const purpose of leaver.withheld) stayer.withheld.add(purpose);
  if (!leaver.gpc) return;
  stayer.except = new Set(
    stayer.gpc ? [...stayer.except].filter((purpose) => leaver.except.has(purpose)) : leaver.except,
  );
  stayer.gpc = true;
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
      model.of(one.person).isJoined = true;
      model.of(ACCOUNT).isJoined = true;
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
    for (const principal of PEOPLE)
      for (const purpose of PURPOSES) {
        const { erased, gpc, withheld, event } = await stateOf(
          nodes[1 - one.node] ?? at.db,
          kid,
          principal,
          purpose,
        );
        expect({ principal, purpose, erased, gpc, withheld, seq: event?.seq }).toEqual({
          principal,
          purpose,
          ...model.expected(principal, purpose),
        });
      }
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
      await joinedRefs(watched, kid, 'ref-laptop');
      const imported = { recordedAt: NOW, evidence: undefined };
      const record = {
        principal: 'ref-laptop',
        isGrant: true,
        now: NOW,
        imported,
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
        { numRuns: 8 },
      );
    });
  });
}
