import type { Command } from 'commander';
import { readPolicies, readShadowCounts, savePolicy } from '../../ingest/policy-store.ts';
import {
  applyPolicy,
  DEFAULT_POLICY,
  RULES,
  type RulePolicy,
  unknownRules,
} from '../../ingest/verdict/classify.ts';
import { readPatterns } from '../../rights/outcomes-store.ts';
import { suggestWeights } from '../../rights/proposal.ts';
import { type PolicyMode, type TenantPolicy, tenantPolicySchema } from '../../schema/policy.ts';
import { createMonitorMatcher } from '../../tenants/tenant.ts';
import {
  addCommand,
  type CommandContext,
  checkObject,
  type Flags,
  readJsonFile,
} from '../command-service.ts';
import { misused, print, tableLines } from '../io-service.ts';

export function define(policy: Command): void {
  addCommand(policy, 'propose [kid]', proposeWeights, {
    about: 'print the weights that outcomes and rulings suggest; change nothing',
    example: 'gpd policy propose shop --json',
  });
}

function weightIn(policy: RulePolicy | null, id: string): string {
  if (!policy) return '';
  return policy.rules.find((rule) => rule.id === id)?.weight.toFixed(2) ?? 'off';
}

const ruleTable = (live: RulePolicy, shadow: RulePolicy | null): string[] =>
  tableLines(RULES, {
    RULE: 'id',
    KIND: 'kind',
    DEFAULT: ({ weight }) => weight.toFixed(2),
    LIVE: ({ id }) => weightIn(live, id),
    SHADOW: ({ id }) => weightIn(shadow, id),
    'WHAT IT MEANS': 'text',
  });

async function proposeWeights({ stored }: CommandContext, kidArgument?: string): Promise<void> {
  const { database, kid } = await stored(kidArgument);
  const { live = tenantPolicySchema.parse({}) } = await readPolicies(database, kid);
  const proposal = suggestWeights(await readPatterns(database, kid), live);
  const { decisions, judged, rules, classes } = proposal;
  print({ kid, ...proposal }, () => [
    `${judged} of ${decisions} decisions have a ruling or an outcome that counts`,
    ...tableLines(rules, {
      RULE: 'rule',
      RIGHT: 'right',
      WRONG: 'wrong',
      '95 %': ({ low, high }) => `${[low, high].map((share) => Math.round(100 * share)).join('-')} %`,
      WEIGHT: ({ weight }) => weight.toFixed(2),
      PROPOSED: ({ weight, proposed }) =>
        proposed === weight ? '-' : typeof proposed === 'number' ? proposed.toFixed(2) : proposed,
    }),
    ...tableLines(classes, { CLASS: 'class', BEFORE: 'before', AFTER: 'after' }),
    'Nothing was changed. To try it: save `policy` of --json, then `gpd tenants policy KID --shadow --set FILE`.',
  ]);
}

/**
 * Shows the policies. With --set or --clear it first changes the live one, or with --shadow the shadow
 * policy.
 */
export async function changePolicy(
  { stored, by }: CommandContext,
  kidArgument: string | undefined,
  options: Flags<'set', 'clear' | 'shadow'>,
): Promise<void> {
  if (options.set !== undefined && options.clear === true) throw misused('use either --set or --clear');
  const next = options.set === undefined ? null : readPolicyFile(options.set);
  const { database, kid } = await stored(kidArgument);
  const mode: PolicyMode = options.shadow === true ? 'shadow' : 'live';
  if (next || options.clear === true) await savePolicy(database, kid, mode, next, await by(kid));
  const policies = await readPolicies(database, kid);
  const counts = await readShadowCounts(database, kid);
  const live = policies.live ? applyPolicy(policies.live) : DEFAULT_POLICY;
  const shadow = policies.shadow ? applyPolicy(policies.shadow) : null;
  const versions = { live: live.version, shadow: shadow?.version ?? null };
  const shown = {
    kid,
    versions,
    live: policies.live ?? null,
    shadow: policies.shadow ?? null,
    shadowCounts: counts,
  };
  print(shown, () => [
    ...ruleTable(live, shadow),
    '',
    `live policy ${live.version}${shadow ? `, shadow policy ${shadow.version}` : ', no shadow policy'}`,
    ...counts.map(
      (count) =>
        `shadow ${count.policyVersion}: ${count.live} would be ${count.shadow}: ${count.verdicts} verdicts`,
    ),
  ]);
}

/**
 * Reads a policy such as {"weights": {"M7": 0.05}, "off": ["T12"], "monitors":
 * {"agents": [], "networks": []}}.
 */
export function readPolicyFile(file: string): TenantPolicy {
  const policy = checkObject(tenantPolicySchema, readJsonFile(file), `${file}: `);
  const unknown = unknownRules(policy);
  if (unknown.length > 0) throw misused(`${file}: no rule ${unknown.join(', ')}`);
  try {
    createMonitorMatcher(policy.monitors);
  } catch (error) {
    throw misused(`${file}: monitors.networks: ${error instanceof Error ? error.message : ''}`);
  }
  return policy;
}
