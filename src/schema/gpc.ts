import { z } from 'zod';

/**
 * The effect of a Global Privacy Control signal on a purpose. `ask`: it refuses, unless the person says yes
 * to this purpose alone.
 */
export const GPC_POLICIES = ['opt-out', 'ask', 'ignore'] as const;
export const gpcPolicySchema = z.enum(GPC_POLICIES);
export type GpcPolicy = (typeof GPC_POLICIES)[number];

/**
 * https://w3c.github.io/gpc/#gpc-support-resource: `lastUpdate` is the day on which gpd's use of the signal
 * last changed.
 */
export const gpcSupportSchema = z.object({ gpc: z.literal(true), lastUpdate: z.iso.date() });
