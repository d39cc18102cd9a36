import { hasGpcHeader, type RequestTier } from '../http/network.ts';
import { sha256 } from '../lib/hash.ts';
import type { ConsentReceipt, Plaintext } from '../schema/bundle.ts';
import type { ConsentState } from '../schema/responses.ts';
import { type ReadSignals, readSignals } from '../schema/signals.ts';
import { isCoarse } from './attestation.ts';
import { type Classification, classify } from './classify/classify.ts';
import { consentGate } from './consent-gate.ts';
import { isFresh } from './freshness.ts';
import { currentEpoch, type Identity, identify } from './identity.ts';
import { readOpened, type Unsealed } from './open.ts';
import { perceive } from './perceive.ts';
import type { IngestTenant, TenantLookup } from './ports.ts';
import { type IngestAnswer, refusal } from './respond.ts';
import { stableInputs } from './stable.ts';
import { type KeyedSignals, summarise } from './summary.ts';

/** read → freshness → consent gate → network tier → identity → classify: what a bundle says, without touching the world. */

export interface JudgeDeps {
  readonly tenants: TenantLookup;
  /** The server's time; a replay answers with the bundle's own. */
  readonly now: (plaintext: Plaintext) => number;
  readonly maxSkewMs: number;
  readonly epochDays: number;
}

const NONCE_HASH_BYTES = 16;

function nonceKey(nonce: string): string {
  return sha256(nonce).subarray(0, NONCE_HASH_BYTES).toString('base64url');
}

/** Until the ledger has been asked, what a bundle says is only asserted. */
export function asserted(state: ConsentState): ConsentState {
  return { ...state, basis: 'asserted' };
}

/** What follows from the signals alone. */
interface Weighed {
  readonly identity: Identity | null;
  readonly summary: KeyedSignals | null;
  readonly classification: Classification;
  readonly shadow: Classification | null;
  readonly defenses: readonly string[];
  readonly incomplete: boolean;
  readonly coarse: boolean;
}

function weigh(tenant: IngestTenant, read: ReadSignals, tier: RequestTier, epoch: number): Weighed {
  const { facts, unusable } = perceive(read, tier);
  const { signals, agent, defenses, incomplete } = facts;
  const { populationKey } = tenant;
  const identity = identify(tenant, signals, { agent, unusable, epoch });
  return {
    identity,
    summary: identity && populationKey && summarise(populationKey, stableInputs(signals, agent, unusable)),
    classification: classify(facts, tenant.policy.rules),
    shadow: tenant.shadow && classify(facts, tenant.shadow.rules),
    defenses,
    incomplete,
    coarse: isCoarse(signals, agent, unusable),
  };
}

/** A bundle that was read to its end: all that is needed of it from here on. */
export interface Judged {
  readonly tenant: IngestTenant;
  /** It came without `epk`. */
  readonly symmetric: boolean;
  readonly now: number;
  /** base64url of a hash. */
  readonly nonce: string;
  readonly clientTs: number;
  readonly consentState: ConsentState;
  /** What a tenant that wants consent proven holds the ledger against; null for every other. */
  readonly toProve: ConsentReceipt | null;
  readonly weighed: Weighed;
}

/** The stages that need the bundle and touch nothing: an answer is a refusal. */
export function judge(
  deps: JudgeDeps,
  unsealed: Unsealed,
  tier: RequestTier,
  requestId: string,
): Judged | IngestAnswer {
  const opened = readOpened(unsealed, deps.tenants);
  if (!opened.ok) return refusal(opened.reason, requestId);
  const { tenant, plaintext } = opened;
  const now = deps.now(plaintext);

  const read = readSignals(plaintext.signals);
  const gate = consentGate({
    receipt: plaintext.consent,
    gpcHeader: hasGpcHeader(tier.headers),
    gpcSignal: read.gpc,
    gpcPolicy: tenant.gpcPolicy,
    basis: tenant.needsProof ? 'proven' : 'asserted',
  });
  if (!isFresh(plaintext.clientTs, now, deps.maxSkewMs))
    return refusal('stale', requestId, asserted(gate.state));
  if (!gate.allowed) return refusal('consent-missing', requestId, asserted(gate.state));
  return {
    tenant,
    symmetric: unsealed.symmetric,
    now,
    nonce: nonceKey(plaintext.nonce),
    clientTs: plaintext.clientTs,
    consentState: gate.state,
    toProve: tenant.needsProof ? plaintext.consent : null,
    weighed: weigh(tenant, read, tier, currentEpoch(now, deps.epochDays)),
  };
}
