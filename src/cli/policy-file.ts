import { unknownRules } from '../ingest/classify/policy.ts';
import { type TenantPolicy, tenantPolicySchema } from '../schema/policy.ts';
import { makeMonitorMatcher } from '../tenants/monitors.ts';
import { misused } from './output.ts';
import { readJsonFile } from './run.ts';

/** Reads a policy: {"weights": {"M7": 0.05}, "off": ["T12"], "monitors": {"agents": [], "networks": []}}. */
export function readPolicyFile(file: string): TenantPolicy {
  const parsed = tenantPolicySchema.safeParse(readJsonFile(file));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw misused(`${file}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not a policy'}`);
  }
  const unknown = unknownRules(parsed.data);
  if (unknown.length > 0) throw misused(`${file}: no rule ${unknown.join(', ')}`);
  try {
    makeMonitorMatcher(parsed.data.monitors);
  } catch (error) {
    throw misused(`${file}: monitors.networks: ${error instanceof Error ? error.message : ''}`);
  }
  return parsed.data;
}
