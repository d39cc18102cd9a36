import type { Check } from '../consent/service.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { NEEDED_PURPOSE } from '../ingest/consent-gate.ts';
import { findDecision } from '../ingest/decision-store.ts';
import type { IngestTenant, TenantLookup } from '../ingest/ports.ts';
import type { Verdict } from '../ingest/verdict.ts';
import { Refusal } from '../lib/errors.ts';
import { DEVICE_ATTESTATION } from '../tenants/tenant.ts';
import type { OpenedToken, Presented } from './presented.ts';
import { relyingPartyOf } from './relying-party.ts';

/** Who may hold a ceremony: a browser with a token for a visit that has to be told apart, and with consent to that. */

export interface AdmitDeps {
  readonly database: Database;
  readonly ingestTenantOf: TenantLookup;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly openToken: (presented: Presented) => OpenedToken | null;
  /** From the database: a withdrawal counts at once. */
  readonly check: (kid: string, check: Check) => Promise<{ readonly allowed: boolean }>;
}

/** Of the request what says who asks. */
export interface Asker {
  readonly presented: Presented;
  /** `Sec-GPC: 1`. */
  readonly gpc: boolean;
  readonly requestId: string;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
}

export interface Admitted extends OpenedToken {
  readonly tenant: IngestTenant;
  readonly verdict: Verdict;
  readonly origin: string;
  readonly token: string;
  readonly rpId: string;
}

/** Each source of GPC only ever takes away; one that came with the bundle was counted there. @throws {Refusal} 451 */
export async function requireConsent(
  { check }: AdmitDeps,
  { kid, tenant, verdict, principalId }: Omit<Admitted, 'rpId'>,
  gpcHeader: boolean,
): Promise<void> {
  const { purposes, gpc } = verdict.consentState;
  const refused = new Refusal('consent-missing');
  if (!purposes.includes(DEVICE_ATTESTATION)) throw refused;
  if (gpcHeader && !gpc && tenant.gpcPolicy(DEVICE_ATTESTATION) !== 'ignore') throw refused;
  // Under `ask` a purpose survives GPC by what the ledger proved alone.
  const survived = (purpose: string): boolean => gpc && tenant.gpcPolicy(purpose) === 'ask';
  const proven = [NEEDED_PURPOSE, DEVICE_ATTESTATION].filter(
    (purpose) => tenant.needsProof || survived(purpose),
  );
  if (proven.length === 0) return;
  if (principalId === undefined) throw refused;
  const decisions = await Promise.all(proven.map((purpose) => check(kid, { principalId, purpose })));
  if (!decisions.every(({ allowed }) => allowed)) throw refused;
}

/** Token, what it stands for, consent. @throws {Refusal} */
export async function admit(deps: AdmitDeps, { presented, gpc }: Asker): Promise<Admitted> {
  const opened = deps.openToken(presented);
  const tenant = opened ? deps.ingestTenantOf(opened.kid) : undefined;
  const consent = opened ? deps.tenantOf(opened.kid) : undefined;
  const { origin = '', token } = presented;
  if (!opened || !tenant?.origins.has(origin) || !consent || typeof token !== 'string')
    throw new Refusal('unauthenticated');
  const found = await findDecision(deps.database, opened.kid, opened.requestId);
  if (!found) throw new Refusal('no-retained-data');
  const { verdict } = found;
  const known = { ...opened, tenant, verdict, origin, token };
  await requireConsent(deps, known, gpc);
  if (!verdict.needsAttestation) throw new Refusal('no-retained-data');
  const rpId = relyingPartyOf(origin, consent.settings['attest.rpId']);
  if (rpId === null) throw new Refusal('attestation-failed');
  return { ...known, rpId };
}
