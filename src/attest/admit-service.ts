import type { ConsentCheck } from '../consent/service.ts';
import { NEEDED_PURPOSE } from '../ingest/consent-gate.ts';
import { findDecision } from '../ingest/decisions-store.ts';
import type { Verdict } from '../ingest/verdict/verdict.ts';
import { Refusal } from '../lib/errors.ts';
import type { Installation } from '../tenants/directory.ts';
import { DEVICE_ATTESTATION } from '../tenants/purposes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type OpenedToken, type Presented, relyingPartyOf } from './ceremony.ts';

/** Admits a browser to a passkey ceremony: it needs a token for a visit with a shared id, and consent. */

export interface AdmissionParts extends Pick<Installation, 'database' | 'tenantOf'> {
  readonly openToken: (presented: Presented) => OpenedToken | null;
  /** From the database: a withdrawal counts at once. */
  readonly check: (kid: string, check: ConsentCheck) => Promise<{ readonly allowed: boolean }>;
}

/** The parts of a request that identify the browser. */
export interface PasskeyCaller {
  readonly presented: Presented;
  /** `Sec-GPC: 1`. */
  readonly gpc: boolean;
  readonly requestId: string;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
}

interface Visit extends OpenedToken {
  readonly tenant: Tenant;
  readonly verdict: Verdict;
}

export type Admitted = Awaited<ReturnType<typeof admit>>;

/**
 * Each GPC source only ever reduces permission; one in the bundle was applied at ingest.
 * @throws {Refusal} 451
 */
export async function requireConsent(
  { check }: AdmissionParts,
  { kid, tenant, verdict, principalId }: Visit,
  gpcHeader: boolean,
): Promise<void> {
  const { purposes, gpc } = verdict.consentState;
  const refused = new Refusal('consent-missing');
  if (!purposes.includes(DEVICE_ATTESTATION)) throw refused;
  if (gpcHeader && !gpc && tenant.gpcPolicy(DEVICE_ATTESTATION) !== 'ignore') throw refused;
  // Under the policy `ask`, only a proof of the ledger lets a purpose survive GPC.
  const survived = (purpose: string): boolean => gpc && tenant.gpcPolicy(purpose) === 'ask';
  const proven = [NEEDED_PURPOSE, DEVICE_ATTESTATION].filter(
    (purpose) => tenant.needsProof || survived(purpose),
  );
  if (proven.length === 0) return;
  if (principalId === undefined) throw refused;
  const decisions = await Promise.all(proven.map((purpose) => check(kid, { principalId, purpose })));
  if (!decisions.every(({ allowed }) => allowed)) throw refused;
}

/** The visit that a token stands for, from a page of the tenant; and consent. @throws {Refusal} */
async function visitOf(parts: AdmissionParts, opened: OpenedToken | null, origin: string, gpc: boolean) {
  const tenant = opened ? parts.tenantOf(opened.kid) : undefined;
  if (!opened || !tenant?.origins.has(origin)) throw new Refusal('unauthenticated');
  const decision = await findDecision(parts.database, opened.kid, opened.requestId);
  if (!decision) throw new Refusal('no-retained-data');
  const visit = { ...opened, tenant, verdict: decision.verdict };
  await requireConsent(parts, visit, gpc);
  return visit;
}

/** Admits a browser to a passkey ceremony. */
export async function admit(parts: AdmissionParts, { presented, gpc }: PasskeyCaller) {
  const { origin = '', token } = presented;
  const visit = await visitOf(parts, parts.openToken(presented), origin, gpc);
  if (!visit.verdict.needsAttestation) throw new Refusal('no-retained-data');
  const rpId = relyingPartyOf(origin, visit.tenant.settings['attest.rpId']);
  if (rpId === null) throw new Refusal('attestation-failed');
  return { ...visit, origin, token: String(token), rpId };
}
