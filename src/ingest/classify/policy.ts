import { AUTOMATION_RULES } from './automation-rules.ts';
import type { Rule } from './facts.ts';
import { MEDIUM_RULES, WEAK_RULES } from './medium-rules.ts';
import { TAMPER_RULES } from './tamper-rules.ts';

/** In every verdict; it changes whenever a rule, a weight or the combination does. */
export const POLICY_VERSION = '2026-11-20.2';

/** The whole table of rules; `docs/classification.md` is written from it. */
export const RULES: readonly Rule[] = [...AUTOMATION_RULES, ...TAMPER_RULES, ...MEDIUM_RULES, ...WEAK_RULES];

const TEXTS: ReadonlyMap<string, string> = new Map(RULES.map((rule) => [rule.id, rule.text]));

/** Plain words for a rule id; a rule of an older policy has only its id. */
export function ruleText(id: string): string {
  return TEXTS.get(id) ?? `Rule ${id} of an earlier policy.`;
}
