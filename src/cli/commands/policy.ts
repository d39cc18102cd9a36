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
import { type CommandContext, command, example, requireTenant } from '../command-service.ts';
import { checkKid, checkObject, type Flags, ONLY_KID_HELP, readJsonFile } from '../input-service.ts';
import { alignColumns, misused, print } from '../io-service.ts';

export function define(policy: Command): void {
  policy
    .command('propose')
    .description('print the weights that outcomes and rulings suggest; change nothing')
    .argument('[kid]', ONLY_KID_HELP, checkKid)
    .addHelpText('after', example('gpd policy propose shop --json'))
    .action(command(proposeWeights));
}

function weightIn(policy: RulePolicy | null, id: string): string {
  if (!policy) return '';
  return policy.rules.find((rule) => rule.id === id)?.weight.toFixed(2) ?? 'off';
}

function ruleTable(live: RulePolicy, shadow: RulePolicy | null): string[] {
  return alignColumns([
    ['RULE', 'KIND', 'DEFAULT', 'LIVE', 'SHADOW', 'WHAT IT MEANS'],
    ...RULES.map(({ id, kind, weight, text }) => [
      id,
      kind,
      weight.toFixed(2),
      weightIn(live, id),
      weightIn(shadow, id),
      text,
    ]),
  ]);
}

async function proposeWeights({ open, resolveKid }: CommandContext, kidArgument?: string): Promise<void> {
  const { database } = await open();
  const kid = await resolveKid(kidArgument);
  await requireTenant(database, kid);
  const { live = tenantPolicySchema.parse({}) } = await readPolicies(database, kid);
  const proposal = suggestWeights(await readPatterns(database, kid), live);
  const { decisions, judged, rules, classes } = proposal;
  const rows = rules.map(({ rule, right: rightCount, wrong: wrongCount, low, high, weight, proposed }) => {
    const range = [low, high].map((share) => Math.round(100 * share)).join('-');
    const next = typeof proposed === 'number' ? proposed.toFixed(2) : proposed;
    return [
      rule,
      `${rightCount}`,
      `${wrongCount}`,
      `${range} %`,
      weight.toFixed(2),
      proposed === weight ? '-' : next,
    ];
  });
  print({ kid, ...proposal }, () => [
    `${judged} of ${decisions} decisions have a ruling or an outcome that counts`,
    ...alignColumns([['RULE', 'RIGHT', 'WRONG', '95 %', 'WEIGHT', 'PROPOSED'], ...rows]),
    ...alignColumns([
      ['CLASS', 'BEFORE', 'AFTER'],
      ...classes.map((row) => [row.class, `${row.before}`, `${row.after}`]),
    ]),
    'Nothing was changed. To try it: save `policy` of --json, then `gpd tenants policy KID --shadow --set FILE`.',
  ]);
}

/** Shows the policies. With --set or --clear it first changes the live one, or with --shadow the shadow policy. */
export async function changePolicy(
  { open, resolveKid, by }: CommandContext,
  kidArgument: string | undefined,
  options: Flags<'set', 'clear' | 'shadow'>,
): Promise<void> {
  if (options.set !== undefined && options.clear === true) throw misused('use either --set or --clear');
  const next = options.set === undefined ? null : readPolicyFile(options.set);
  const { database } = await open();
  const kid = await resolveKid(kidArgument);
  await requireTenant(database, kid);
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

/** Reads a policy such as {"weights": {"M7": 0.05}, "off": ["T12"], "monitors": {"agents": [], "networks": []}}. */
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
