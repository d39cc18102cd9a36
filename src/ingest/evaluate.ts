import type { GrantClaim } from '../consent/doubts.ts';
import { hasGpcHeader, type RequestTier } from '../http/request.ts';
import { sha256 } from '../lib/crypto.ts';
import type { ConsentReceipt } from '../schema/bundle.ts';
import type { ConsentState } from '../schema/responses.ts';
import { type ReadSignals, readSignals } from '../schema/signals.ts';
import { isCoarse } from './attestation.ts';
import { policyOf } from './classify/policy.ts';
import { NEEDED_PURPOSE } from './consent-gate.ts';
import { currentEpoch } from './identity.ts';
import type { Unsealed } from './open.ts';
import { refuse, STAGES } from './pipeline.ts';
import type { EvaluateDeps, IngestTenant } from './ports.ts';
import type { IngestAnswer } from './respond.ts';
import { stableInputs } from './stable.ts';
import { summarise } from './summary.ts';

/** The frame of the stages that need the bundle and touch nothing: open to classify. */

const NONCE_HASH_BYTES = 16;

function nonceKey(nonce: string): string {
  return sha256(nonce).subarray(0, NONCE_HASH_BYTES).toString('base64url');
}

/** Until the ledger has been asked, what a bundle says is only asserted. */
export function asserted(state: ConsentState): ConsentState {
  return { ...state, basis: 'asserted' };
}

/** What follows from the signals alone. */
function classifyBundle(tenant: IngestTenant, read: ReadSignals, tier: RequestTier, epoch: number) {
  const { facts, unusable } = STAGES.network.run(read, tier);
  const { signals, agent, defenses, incomplete } = facts;
  const { populationKey } = tenant;
  const identity = STAGES.identity.run(tenant, signals, { agent, unusable, epoch });
  return {
    identity,
    summary: identity && populationKey && summarise(populationKey, stableInputs(signals, agent, unusable)),
    classification: STAGES.classify.run(facts, policyOf(tenant.policy).rules),
    shadow: tenant.shadow && STAGES.classify.run(facts, policyOf(tenant.shadow).rules),
    defenses,
    incomplete,
    coarse: isCoarse(signals, agent, unusable),
    /** Nothing was asked in a worker, or it did not answer. */
    workerless: signals.worker === null,
  };
}

/** All that is needed of a bundle from here on. */
export type Evaluated = Readonly<Exclude<ReturnType<typeof evaluate>, IngestAnswer>>;

/** The grant that the bundle names; null where it names none. */
function claimOf(kid: string, { principalId, proof }: ConsentReceipt): GrantClaim | null {
  if (principalId === undefined || proof === undefined) return null;
  return { kid, principalId, purpose: NEEDED_PURPOSE, proof };
}

/** An answer is a refusal. @throws {Unavailable} when the server's clock is behind */
export function evaluate(deps: EvaluateDeps, unsealed: Unsealed, tier: RequestTier, requestId: string) {
  const opened = STAGES.open.run(unsealed, deps.tenants);
  if (!opened.ok) return refuse('open', opened.reason, requestId);
  const { tenant, plaintext } = opened;
  deps.requireClock();
  const now = deps.now(plaintext);
  const fresh = STAGES.freshness.run(plaintext.clientTs, now, deps.maxSkewMs);
  const read = readSignals(plaintext.signals);
  // A stale bundle too gets its consent state.
  const gate = STAGES['consent gate'].run({
    receipt: plaintext.consent,
    gpcHeader: hasGpcHeader(tier.headers),
    gpcSignal: read.gpc,
    gpcPolicy: tenant.gpcPolicy,
    basis: tenant.needsProof ? 'proven' : 'asserted',
  });
  if (!fresh) return refuse('freshness', 'stale', requestId, asserted(gate.state));
  if (!gate.allowed) return refuse('consent gate', 'consent-missing', requestId, asserted(gate.state));
  return {
    tenant,
    symmetric: unsealed.symmetric,
    now,
    /** base64url of a hash. */
    nonce: nonceKey(plaintext.nonce),
    clientTs: plaintext.clientTs,
    consentState: gate.state,
    rides: claimOf(tenant.kid, plaintext.consent),
    /** Compared with the ledger. */
    mustProve: tenant.needsProof || gate.overGpc.length > 0,
    overGpc: gate.overGpc,
    after: plaintext.after,
    classified: classifyBundle(tenant, read, tier, currentEpoch(now, deps.epochDays)),
  };
}
