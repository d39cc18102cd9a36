import { unknownRules } from '../ingest/verdict/policy.ts';
import { type TenantPolicy, tenantPolicySchema } from '../schema/policy.ts';
import { makeMonitorMatcher } from '../tenants/tenant.ts';
import { misused } from './output.ts';
import { checkedPart, readJsonFile } from './run.ts';

/** Reads a policy: {"weights": {"M7": 0.05}, "off": ["T12"], "monitors": {"agents": [], "networks": []}}. */
export function readPolicyFile(file: string): TenantPolicy {
  const policy = checkedPart(tenantPolicySchema, readJsonFile(file), `${file}: `);
  const unknown = unknownRules(policy);
  if (unknown.length > 0) throw misused(`${file}: no rule ${unknown.join(', ')}`);
  try {
    makeMonitorMatcher(policy.monitors);
  } catch (error) {
    throw misused(`${file}: monitors.networks: ${error instanceof Error ? error.message : ''}`);
  }
  return policy;
}
