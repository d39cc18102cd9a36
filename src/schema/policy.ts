import { z } from 'zod';

/** The tenant's changes to the classification: weights, rules switched off, monitors. */

const ruleId = z.string().regex(/^[ATMWN]\d{1,2}$/, 'a rule id is a letter and a number, for instance M7');

export const tenantPolicySchema = z.strictObject({
  /** Rule id → what it adds to suspectScore. */
  weights: z.record(ruleId, z.number().min(0).max(1)).default({}),
  /** Rules that do not count at all. */
  off: z.array(ruleId).max(100).default([]),
  /** Automation of the operator keeps its class and gets almost no suspicion. */
  monitors: z
    .strictObject({
      /** Origins of Web Bot Auth agents. */
      agents: z.array(z.string().max(512)).max(100).default([]),
      /** CIDR ranges. */
      networks: z.array(z.string().max(64)).max(100).default([]),
    })
    .default({ agents: [], networks: [] }),
});

export type TenantPolicy = z.infer<typeof tenantPolicySchema>;

export const POLICY_MODES = ['live', 'shadow'] as const;
export type PolicyMode = (typeof POLICY_MODES)[number];
