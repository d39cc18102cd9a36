import type { Database } from '../db/engine.ts';
import { TenantGone } from '../lib/errors.ts';
import { readEntries } from '../log/entries-store.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { ConsentDecision } from './decide.ts';
import type { GrantClaim } from './doubts-store.ts';
import { findOpening } from './openings-store.ts';
import type { ConsentService } from './service.ts';

/** Asks a tenant's own ledger about the consent that a bundle names (contract 3.3). */

/**
 * Asks the tenant's ledger which purposes are granted now. The list is empty if the proof names no live grant
 * of the needed purpose (contract 3.3), or the tenant was removed. It reads the database each time, so a
 * withdrawal counts at once.
 */
export type ProveConsent = (claim: ConsentClaim) => Promise<readonly string[]>;

/** Results by purpose. */
interface ConsentClaim extends GrantClaim {
  /** The purpose without which nothing counts as proven. */
  readonly purposes: readonly string[];
  /** Purposes that only a grant over a GPC signal allows. */
  readonly overGpc: readonly string[];
}

/** True if the proof names a grant of this principal that is still live. */
async function isLiveGrant(
  database: Database,
  tenant: Tenant,
  { principalId, purpose, proof }: GrantClaim,
  decision: ConsentDecision | undefined,
): Promise<boolean> {
  if (decision?.allowed !== true) return false;
  if (decision.proof.seq === proof.seq) return decision.proof.hash === proof.hash;
  const principal = tenant.refOf(principalId);
  const opening = await findOpening(database, tenant, proof.seq);
  const [entry] = await readEntries(database, tenant.kid, proof.seq, 1);
  const isOwnGrant =
    opening?.principal === principal && opening.purpose === purpose && opening.choice === 'granted';
  return isOwnGrant && entry?.hash === proof.hash;
}

/**
 * All purposes come from one snapshot: one withdrawn together with the needed one is not reported as proven.
 */
export function createProveConsent(
  database: Database,
  service: Pick<ConsentService, 'decideAll'>,
  tenantOf: (kid: string) => Tenant,
): ProveConsent {
  const prove: ProveConsent = async (claim) => {
    const { principalId, purposes, overGpc } = claim;
    const tenant = tenantOf(claim.kid);
    const checks = purposes.map((purpose) => ({ principalId, purpose }));
    const decisions = await service.decideAll(tenant, checks);
    const live = await isLiveGrant(database, tenant, claim, decisions[purposes.indexOf(claim.purpose)]);
    const proven = (purpose: string, decided: ConsentDecision | undefined): boolean =>
      decided?.allowed === true && (decided.overGpc || !overGpc.includes(purpose));
    return live ? purposes.filter((purpose, i) => proven(purpose, decisions[i])) : [];
  };
  return (claim) =>
    prove(claim).catch((error: unknown) => {
      if (error instanceof TenantGone) return [];
      throw error;
    });
}
