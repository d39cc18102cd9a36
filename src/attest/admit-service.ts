import type { ConsentCheck } from '../consent/service.ts';
import type { Database } from '../db/engine.ts';
import { NEEDED_PURPOSE } from '../ingest/consent-gate.ts';
import { findDecision } from '../ingest/decisions-store.ts';
import type { Verdict } from '../ingest/verdict/verdict.ts';
import type { Clock } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { DEVICE_ATTESTATION } from '../tenants/purposes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type FailedDeps, type OpenedToken, type Presented, relyingPartyOf } from './ceremony.ts';

/** Admits a browser to a passkey ceremony: it needs a token for a visit with a shared id, and consent. */

export interface AdmitDeps extends FailedDeps {
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly clock: Clock;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  /** Reads the database, so that a withdrawal counts at once. */
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
  { check }: AdmitDeps,
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

/** Finds the visit of a token from a page of the tenant, and requires consent. @throws {Refusal} */
async function visitOf(deps: AdmitDeps, opened: OpenedToken | null, origin: string, gpc: boolean) {
  const tenant = opened ? deps.tenantOf(opened.kid) : undefined;
  if (!opened || !tenant?.origins.has(origin)) throw new Refusal('unauthenticated');
  const decision = await findDecision(deps.database, opened.kid, opened.requestId);
  if (!decision) throw new Refusal('no-retained-data');
  const visit = { ...opened, tenant, verdict: decision.verdict };
  await requireConsent(deps, visit, gpc);
  return visit;
}

/** Admits a browser to a passkey ceremony. */
export async function admit(deps: AdmitDeps, { presented, gpc }: PasskeyCaller) {
  const { origin = '', token } = presented;
  const visit = await visitOf(deps, deps.openToken(presented), origin, gpc);
  if (!visit.verdict.needsAttestation) throw new Refusal('no-retained-data');
  const rpId = relyingPartyOf(origin, visit.tenant.settings['attest.rpId']);
  if (rpId === null) throw new Refusal('attestation-failed');
  return { ...visit, origin, token: String(token), rpId };
}
