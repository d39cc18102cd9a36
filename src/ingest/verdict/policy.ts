import { sha256 } from '../../lib/crypto.ts';
import { canonicalJson } from '../../lib/json.ts';
import type { TenantPolicy } from '../../schema/policy.ts';
import { AUTOMATION_RULES } from './automation-rules.ts';
import { MEDIUM_RULES, WEAK_RULES } from './medium-rules.ts';
import type { Rule } from './rule.ts';
import { TAMPER_RULES } from './tamper-rules.ts';

/** In every verdict; it changes whenever a rule, a weight or the combination does. */
export const POLICY_VERSION = '2026-11-25.1';

/** The whole table of rules; `docs/classification.md` explains it. */
export const RULES: readonly Rule[] = [...AUTOMATION_RULES, ...TAMPER_RULES, ...MEDIUM_RULES, ...WEAK_RULES];

const BY_ID: ReadonlyMap<string, Rule> = new Map(RULES.map((rule) => [rule.id, rule]));

/** Plain words for a rule id; a rule of an older policy has only its id. */
export function ruleText(id: string): string {
  return BY_ID.get(id)?.text ?? `Rule ${id} of an earlier policy.`;
}

/** Leaves out rules that state a fact which another one counted: a person sees it once. They are on record with no weight. */
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

/** The table as a tenant weighs it. The version carries a hash, so that a verdict says by which weights it came about. */
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

/** The table as this tenant weighs it, made once for each change; null: as it is. */
export function policyOf(tenantPolicy: TenantPolicy | null): RulePolicy {
  if (tenantPolicy === null) return DEFAULT_POLICY;
  const policy = applied.get(tenantPolicy) ?? applyPolicy(tenantPolicy);
  applied.set(tenantPolicy, policy);
  return policy;
}
