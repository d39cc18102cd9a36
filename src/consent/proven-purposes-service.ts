import type { Database } from '../db/db.ts';
import { TenantGone } from '../lib/errors.ts';
import { readEntries } from '../log/read-store.ts';
import type { ConsentDecision, ProofRef } from './decide.ts';
import { principalRef } from './principal.ts';
import type { Check, ConsentService } from './service.ts';
import type { ConsentTenant } from './tenant.ts';
import { findOpening } from './terms-store.ts';

/** What a tenant's own ledger says of the consent that a bundle names (contract 3.3). */

/**
 * Asks the tenant's own ledger which purposes it grants now; none where the proof names no live grant of the needed one
 * (contract 3.3), nor of a tenant that is gone. Read from the database each time: a withdrawal counts at once.
 */
export type ProveConsent = (claim: {
  readonly kid: string;
  readonly principalId: string;
  readonly needed: string;
  /** The needed one among them. */
  readonly purposes: readonly string[];
  /** Those of them that only a grant over a GPC signal allows. */
  readonly overGpc: readonly string[];
  readonly proof: { readonly seq: number; readonly hash: string };
}) => Promise<readonly string[]>;

/** Is the grant that this proof names an entry of the principal's own, and is the grant still live? */
async function isLiveGrant(
  database: Database,
  tenant: ConsentTenant,
  { principalId, purpose }: Check,
  decision: ConsentDecision | undefined,
  proof: ProofRef,
): Promise<boolean> {
  if (decision?.allowed !== true) return false;
  if (decision.proof.seq === proof.seq) return decision.proof.hash === proof.hash;
  const principal = principalRef(tenant.principalKey, principalId);
  const opening = await findOpening(database, tenant.kid, proof.seq);
  const [entry] = await readEntries(database, tenant.kid, proof.seq, 1);
  const own = opening?.principal === principal && opening.purpose === purpose && opening.choice === 'granted';
  return own && entry?.hash === proof.hash;
}

/** All purposes come from one snapshot: one withdrawn together with the needed one is not reported as proven. */
export function makeProveConsent(
  database: Database,
  service: Pick<ConsentService, 'decideAll'>,
  tenantOf: (kid: string) => ConsentTenant,
): ProveConsent {
  const prove: ProveConsent = async ({ kid, principalId, needed, purposes, overGpc, proof }) => {
    const tenant = tenantOf(kid);
    const decisions = await service.decideAll(
      tenant,
      purposes.map((purpose) => ({ principalId, purpose })),
    );
    const decision = decisions[purposes.indexOf(needed)];
    const live = await isLiveGrant(database, tenant, { principalId, purpose: needed }, decision, proof);
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
