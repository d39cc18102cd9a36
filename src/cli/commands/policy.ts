import { readPolicies, readShadowCounts, savePolicy } from '../../ingest/policy-store.ts';
import { applyPolicy, DEFAULT_POLICY, RULES, type RulePolicy } from '../../ingest/verdict/policy.ts';
import { readPatterns } from '../../rights/outcomes.ts';
import { suggestWeights } from '../../rights/proposal.ts';
import { type PolicyMode, tenantPolicySchema } from '../../schema/policy.ts';
import { withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { misused, print, table } from '../output.ts';
import { readPolicyFile } from '../policy-file.ts';
import { type Flags, requireTenant } from '../run.ts';

function weightIn(policy: RulePolicy | null, id: string): string {
  if (!policy) return '';
  return policy.rules.find((rule) => rule.id === id)?.weight.toFixed(2) ?? 'off';
}

function ruleTable(live: RulePolicy, shadow: RulePolicy | null): string[] {
  return table([
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

async function proposeWeights(kid: string): Promise<void> {
  const { live = tenantPolicySchema.parse({}), patterns } = await withContext(async ({ database }) => {
    await requireTenant(database, kid);
    return { ...(await readPolicies(database, kid)), patterns: await readPatterns(database, kid) };
  });
  const proposal = suggestWeights(patterns, live);
  const { decisions, judged, rules, classes } = proposal;
  const rows = rules.map(({ rule, right, wrong, low, high, weight, proposed }) => {
    const range = [low, high].map((share) => Math.round(100 * share)).join('-');
    const next = typeof proposed === 'number' ? proposed.toFixed(2) : proposed;
    return [rule, `${right}`, `${wrong}`, `${range} %`, weight.toFixed(2), proposed === weight ? '-' : next];
  });
  print({ kid, ...proposal }, () => [
    `${judged} of ${decisions} decisions have a ruling or an outcome that counts`,
    ...table([['RULE', 'RIGHT', 'WRONG', '95 %', 'WEIGHT', 'PROPOSED'], ...rows]),
    ...table([
      ['CLASS', 'BEFORE', 'AFTER'],
      ...classes.map((row) => [row.class, `${row.before}`, `${row.after}`]),
    ]),
    'Nothing was changed. To try it: save `policy` of --json, then `gpd tenants policy KID --shadow --set FILE`.',
  ]);
}

export const ACTIONS: Actions = { propose: proposeWeights };

/** Without an option it shows; --set and --clear change the live policy, or with --shadow the one that is tried out. */
export async function policy(kid: string, options: Flags<'set', 'clear' | 'shadow'>): Promise<void> {
  if (options.set !== undefined && options.clear === true) throw misused('use either --set or --clear');
  const next = options.set === undefined ? null : readPolicyFile(options.set);
  await withContext(async ({ store: { database }, by }) => {
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
  });
}
