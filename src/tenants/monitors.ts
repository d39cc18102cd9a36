import { type Address, inRanges, parseRange, type Range } from '../lib/ip.ts';
import type { TenantPolicy } from '../schema/policy.ts';

/** The operator's own monitors, by Web Bot Auth agent or by address. @throws when a range is invalid */
export function makeMonitorMatcher(
  monitors: TenantPolicy['monitors'],
): (agentId: string | null, client: Address | null) => boolean {
  const agents = new Set(monitors.agents);
  const ranges: readonly Range[] = monitors.networks.map(parseRange);
  return (agentId, client) =>
    (agentId !== null && agents.has(agentId)) || (client !== null && inRanges(client, ranges));
}
