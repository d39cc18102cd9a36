import { sha256 } from '../../lib/crypto.ts';
import { canonicalJson } from '../../lib/json.ts';
import type { TenantPolicy } from '../../schema/policy.ts';
import type { VisitorClass } from '../../schema/responses.ts';
import { AUTOMATION_RULES } from './automation-rules.ts';
import type { Facts } from './facts.ts';
import { MEDIUM_RULES, WEAK_RULES } from './medium-rules.ts';
import type { Rule, RuleKind } from './rule.ts';
import { TAMPER_RULES } from './tamper-rules.ts';

/**
 * Scores the rules, which are data: which of them count, their class and score, and what would have changed
 * the class.
 */

export type RuleClass = Exclude<VisitorClass, 'declared_agent'>;

export interface FiredRule {
  readonly id: string;
  readonly weight: number;
  /** The kind that the rule counted as, which may differ from its own. */
  readonly kind: RuleKind;
}

/** The changes that would have changed the class; shown to the person concerned and to the reviewer. */
export interface Counterfactual {
  /** Rules that made the difference alone, each with the class that the decision would have without it. */
  readonly decisive: readonly { readonly id: string; readonly class: RuleClass }[];
  /** If no single rule made the difference, the class without all of them. */
  readonly withoutAll: RuleClass | null;
}

/** Number of rules of each kind that fired. */
export type KindCounts = Readonly<Record<RuleKind, number>>;

/**
 * Any A is automation; T with M, or two M, is automation; T alone, one M ("a single weak tell") or an
 * incomplete bundle is unknown; else human. W rows only move the score (signals.md section 2).
 */
export function combine(count: KindCounts, incomplete: boolean): RuleClass {
  if (count.A > 0) return 'undeclared_automation';
  if ((count.T > 0 && count.M > 0) || count.M >= 2) return 'undeclared_automation';
  return count.T > 0 || count.M > 0 || incomplete ? 'unknown' : 'human';
}

/** The maximum weight of all weak rules together. */
export const WEAK_CAP = 0.1;

const KINDS: readonly RuleKind[] = ['A', 'T', 'M', 'W'];

/** The kind decides before the weight: a tenant's weights move the score, never the class. */
function isHeavier(a: FiredRule, b: FiredRule): boolean {
  const rank = KINDS.indexOf(b.kind) - KINDS.indexOf(a.kind);
  return rank > 0 || (rank === 0 && a.weight > b.weight);
}

/** The kind and weight of a rule together with the other strong ones, before its fact is checked. */
function evaluateRule(rule: Rule, strong: readonly Rule[]): FiredRule {
  const otherRules = strong.filter(({ id }) => id !== rule.id);
  const kind = rule.demote?.(otherRules) ?? rule.kind;
  return { id: rule.id, weight: kind === 'W' ? Math.min(rule.weight, WEAK_CAP) : rule.weight, kind };
}

/**
 * The kind and weight of each rule that fired. Of the rules that state the same fact, the heaviest counts, or
 * the first of equals; the others are recorded without weight.
 */
export function countFired(fired: readonly Rule[]): FiredRule[] {
  const strong = fired.filter(({ kind }) => kind !== 'W');
  const counted = fired.map((rule) => evaluateRule(rule, strong));
  const heaviest = new Map<string, FiredRule>();
  for (const [i, one] of counted.entries()) {
    const fact = fired[i]?.fact;
    if (fact === undefined) continue;
    const heaviestRule = heaviest.get(fact);
    if (heaviestRule === undefined || isHeavier(one, heaviestRule)) heaviest.set(fact, one);
  }
  return counted.map((one, i) => {
    const fact = fired[i]?.fact;
    return fact === undefined || heaviest.get(fact) === one ? one : { ...one, weight: 0, kind: 'W' };
  });
}

export function countKinds(rules: readonly FiredRule[]): KindCounts {
  const counts = { A: 0, T: 0, M: 0, W: 0 };
  for (const { kind } of rules) counts[kind] += 1;
  return counts;
}

function findCounterfactual<R extends { readonly id: string; readonly kind: string }>(
  fired: readonly R[],
  classOf: (rules: readonly R[]) => RuleClass,
): Counterfactual {
  const actual = classOf(fired);
  const decisive = fired.flatMap((rule) => {
    if (rule.kind === 'W') return [];
    const without = classOf(fired.filter((firedRule) => firedRule !== rule));
    return without === actual ? [] : [{ id: rule.id, class: without }];
  });
  const bare = classOf([]);
  return { decisive, withoutAll: decisive.length === 0 && bare !== actual ? bare : null };
}

/**
 * Computed by the rules that made the verdict and stored with it, because later rules cannot explain it. Null
 * if no strong rule fired.
 * @param incomplete whether the bundle alone already forbade `human`
 */
function counterfactualOf(fired: readonly Rule[], incomplete: boolean): Counterfactual | null {
  if (fired.every(({ kind }) => kind === 'W')) return null;
  return findCounterfactual(fired, (rules) => combine(countKinds(countFired(rules)), incomplete));
}

/** The part of a stored verdict that explains its class. */
interface Explained {
  readonly rules: readonly FiredRule[];
  readonly incomplete: boolean;
  readonly counterfactual?: Counterfactual;
}

/** The result of the rules alone, without a review or a signature. */
export function classByRules({ rules, incomplete }: Pick<Explained, 'rules' | 'incomplete'>): RuleClass {
  return combine(countKinds(rules), incomplete);
}

/** Verdicts that were stored without it are explained by the kinds that their rules counted as. */
export function explain(verdict: Explained): Counterfactual {
  const { rules, incomplete, counterfactual } = verdict;
  return (
    counterfactual ??
    findCounterfactual(rules, (ruleSubset) => classByRules({ rules: ruleSubset, incomplete }))
  );
}

export type Classification = Readonly<ReturnType<typeof classify>>;

function scoreOf(rules: readonly FiredRule[]): number {
  const sum = (list: readonly FiredRule[]): number => list.reduce((total, { weight }) => total + weight, 0);
  const weak = Math.min(WEAK_CAP, sum(rules.filter(({ kind }) => kind === 'W')));
  const total = sum(rules.filter(({ kind }) => kind !== 'W')) + weak;
  return Math.round(Math.min(1, total) * 1000) / 1000;
}

/** One scorer over the rules as data. */
export function classify(facts: Facts, table: readonly Rule[]) {
  const fired = table.filter((rule) => rule.fires(facts));
  const rules = countFired(fired);
  const count = countKinds(rules);
  return {
    class: combine(count, facts.incomplete),
    score: scoreOf(rules),
    rules,
    /** Distinct T rules. */
    inconsistency: count.T,
    automation: count.A > 0,
    /** Null where no strong rule fired. */
    counterfactual: counterfactualOf(fired, facts.incomplete),
  };
}

// The table of rules, and each tenant's weights.

/** Part of every verdict; it changes with every change of a rule, a weight or the combination. */
export const POLICY_VERSION = '2026-11-28.1';

/** The whole table of rules; `docs/classification.md` explains it. */
export const RULES: readonly Rule[] = [...AUTOMATION_RULES, ...TAMPER_RULES, ...MEDIUM_RULES, ...WEAK_RULES];

const BY_ID: ReadonlyMap<string, Rule> = new Map(RULES.map((rule) => [rule.id, rule]));

/**
 * Leaves out rules whose fact another rule counted, so that a person reads it once. They are recorded without
 * weight.
 */
export function toldOnce<R extends { readonly id: string; readonly weight: number }>(
  rules: readonly R[],
): R[] {
  const factOf = ({ id }: R) => BY_ID.get(id)?.fact;
  const counted = new Set(rules.filter(({ weight }) => weight > 0).map(factOf));
  return rules.filter((rule) => rule.weight > 0 || factOf(rule) === undefined || !counted.has(factOf(rule)));
}

/** Rules to classify by, with the version that every verdict names. */
export interface RulePolicy {
  readonly version: string;
  readonly rules: readonly Rule[];
}

export const DEFAULT_POLICY: RulePolicy = { version: POLICY_VERSION, rules: RULES };

/** Ids that a policy names and the table does not have. */
export function unknownRules(policy: TenantPolicy): string[] {
  return [...Object.keys(policy.weights), ...policy.off].filter((id) => !BY_ID.has(id));
}

/**
 * Applies a tenant's weights to the table. The version contains their hash, so that each verdict names its
 * weights.
 */
export function applyPolicy(policy: TenantPolicy): RulePolicy {
  const { weights, off } = policy;
  if (Object.keys(weights).length === 0 && off.length === 0) return DEFAULT_POLICY;
  const digest = sha256(canonicalJson({ weights, off: [...off].sort() }))
    .toString('hex')
    .slice(0, 8);
  const rules = RULES.filter((rule) => !off.includes(rule.id)).map((rule) => {
    const weight = weights[rule.id];
    return weight === undefined ? rule : { ...rule, weight };
  });
  return { version: `${POLICY_VERSION}+${digest}`, rules };
}

const applied = new WeakMap<TenantPolicy, RulePolicy>();

/** The table with a tenant's weights, computed once per change; null for the unchanged table. */
export function policyOf(tenantPolicy: TenantPolicy | null): RulePolicy {
  if (tenantPolicy === null) return DEFAULT_POLICY;
  const policy = applied.get(tenantPolicy) ?? applyPolicy(tenantPolicy);
  applied.set(tenantPolicy, policy);
  return policy;
}
