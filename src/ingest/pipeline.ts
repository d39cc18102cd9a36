import { DAY, MINUTE } from '../lib/clock.ts';
import { sha256 } from '../lib/hash.ts';
import type { Address } from '../lib/ip.ts';
import type { Random } from '../lib/random.ts';
import type { ConsentReceipt, Plaintext, SealedBundle } from '../schema/bundle.ts';
import type { ConsentState } from '../schema/responses.ts';
import { type ReadSignals, readSignals } from '../schema/signals.ts';
import { type AttestationLimits, isCoarse, isShared } from './attestation.ts';
import type { BotAuthRequest } from './bot-auth/message.ts';
import { type Classification, classify } from './classify/classify.ts';
import { consentGate, NEEDED_PURPOSE } from './consent-gate.ts';
import { decide } from './decide.ts';
import { isFresh, nonceExpiry } from './freshness.ts';
import { currentEpoch, type Identity, identify } from './identity.ts';
import { hasGpcHeader, type RequestTier } from './network.ts';
import { openBundle } from './open.ts';
import { perceive } from './perceive.ts';
import type {
  DeviceLookup,
  IngestTenant,
  IssueToken,
  KnownDevice,
  ProveConsent,
  Recorder,
  TenantLookup,
} from './ports.ts';
import { type IngestAnswer, refusal, verdictResponse } from './respond.ts';
import { stableInputs } from './stable.ts';
import { type KeyedSignals, summarise } from './summary.ts';

/** One bundle that passed the envelope, with what the trust boundary knows of its request. */
export interface IngestInput extends RequestTier {
  readonly bundle: SealedBundle;
  readonly requestId: string;
  /** The request target as sent: `/_fp/i/v1`. */
  readonly target: string;
  /** The client behind the trust boundary; looked at, never stored. */
  readonly client: Address | null;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
  /** The value that this response's gp_session cookie will have. */
  readonly session: string;
}

export interface IngestDeps {
  readonly tenants: TenantLookup;
  readonly devices: DeviceLookup;
  readonly recorder: Recorder;
  /** Web Bot Auth: the agent that signed this request, or null. */
  readonly botAuth: (request: BotAuthRequest, now: number) => Promise<string | null>;
  readonly proveConsent: ProveConsent;
  readonly issueToken: IssueToken;
  readonly random: Random;
  /** The server's time; a replay answers with the bundle's own. */
  readonly now: (plaintext: Plaintext) => number;
  readonly maxSkewMs: number;
  readonly epochDays: number;
  readonly attestation: AttestationLimits;
}

const UNKNOWN_DEVICE: KnownDevice = {
  seen: false,
  epoch: null,
  neverAutomation: false,
  marked: false,
  spread: { networksToday: 0, pairsOfWeek: 0, tenantPairsOfWeek: 0 },
};
const NONCE_HASH_BYTES = 16;
/** As long as the transparency token lives (contract 3.5). */
const SUMMARY_TTL_MS = 5 * MINUTE;
const SALT_BYTES = 16;

function nonceKey(nonce: string): string {
  return sha256(nonce).subarray(0, NONCE_HASH_BYTES).toString('base64url');
}

/** Until the ledger has been asked, what a bundle says is only asserted. */
function asserted(state: ConsentState): ConsentState {
  return { ...state, basis: 'asserted' };
}

/** A tenant that wants consent proven gets no verdict on an assertion (contract 3.3). */
async function isProven(deps: IngestDeps, tenant: IngestTenant, receipt: ConsentReceipt): Promise<boolean> {
  const { principalId, proof } = receipt;
  if (principalId === undefined || proof === undefined) return false;
  return deps.proveConsent({ kid: tenant.kid, principalId, purpose: NEEDED_PURPOSE, proof });
}

function tokenFor(
  deps: IngestDeps,
  input: IngestInput,
  tenant: IngestTenant,
  now: number,
): string | undefined {
  const { origin } = input.headers;
  if (typeof origin !== 'string' || !tenant.origins.has(origin)) return undefined;
  const { requestId, session } = input;
  return deps.issueToken({ kid: tenant.kid, requestId, session, origin, now });
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
interface Judged {
  readonly tenant: IngestTenant;
  readonly now: number;
  /** base64url of a hash. */
  readonly nonce: string;
  readonly consentState: ConsentState;
  readonly declaredAgentId: string | null;
  readonly weighed: Weighed;
}

/**
 * lookup* → decide → record* → respond, in a frame that does not hold the signals: what a frame holds while it waits for
 * the database, the collector copies for every bundle under way.
 */
async function settle(deps: IngestDeps, input: IngestInput, judged: Judged): Promise<IngestAnswer> {
  const { requestId, network } = input;
  const { tenant, now, consentState, declaredAgentId, weighed } = judged;
  const { identity } = weighed;
  const day = Math.floor(now / DAY);
  const known = identity
    ? await deps.devices.lookup({ kid: tenant.kid, durable: identity.durable, network, day })
    : UNKNOWN_DEVICE;

  const decideBy = (classification: Classification, policyVersion: string) =>
    decide({
      requestId,
      now,
      identity,
      known,
      classification,
      defenses: weighed.defenses,
      declaredAgentId,
      needsAttestation: weighed.coarse || isShared(known.spread, deps.attestation),
      consentState,
      policyVersion,
      monitor: tenant.isMonitor(declaredAgentId, input.client),
      incomplete: weighed.incomplete,
    });
  const verdict = decideBy(weighed.classification, tenant.policy.version);
  const shadow = weighed.shadow && tenant.shadow && decideBy(weighed.shadow, tenant.shadow.version);

  const outcome = await deps.recorder.record({
    kid: tenant.kid,
    nonce: judged.nonce,
    nonceExpiresAt: nonceExpiry(now, deps.maxSkewMs),
    identified: identity && {
      durable: identity.durable,
      visitorId: identity.visitorId,
      epoch: identity.epoch,
      network,
      day,
      indexed: known.epoch === identity.epoch,
      marked: known.marked,
    },
    verdict,
    shadow: shadow && { policyVersion: shadow.policyVersion, class: shadow.class, day },
    salt: deps.random(SALT_BYTES).toString('base64url'),
    summary: weighed.summary && {
      signals: weighed.summary.signals,
      joint: weighed.summary.joint,
      newDevice: !known.seen,
      counts: !known.marked,
      expiresAt: now + SUMMARY_TTL_MS,
    },
    webhooks: tenant.decisionWebhooks,
  });
  if (outcome === 'replay') return refusal('replay', requestId, consentState);

  const response = verdictResponse(verdict, identity?.visitorId ?? null);
  const transparencyToken = identity ? tokenFor(deps, input, tenant, now) : undefined;
  if (transparencyToken !== undefined) response.transparencyToken = transparencyToken;
  return { status: 200, response };
}

/**
 * open → freshness → consent gate → network tier → bot auth* → identity → classify → lookup* → record* → respond.
 * Cheap refusals come first; only the starred stages touch the world, and nothing is written before record.
 */
export async function ingest(deps: IngestDeps, input: IngestInput): Promise<IngestAnswer> {
  const { requestId, headers } = input;

  const opened = openBundle(input.bundle, deps.tenants);
  if (!opened.ok) return refusal(opened.reason, requestId);
  const { tenant, plaintext } = opened;
  const now = deps.now(plaintext);

  const read = readSignals(plaintext.signals);
  const gate = consentGate({
    receipt: plaintext.consent,
    gpcHeader: hasGpcHeader(headers),
    gpcSignal: read.gpc,
    gpcPolicy: tenant.gpcPolicy,
    basis: tenant.needsProof ? 'proven' : 'asserted',
  });
  if (!isFresh(plaintext.clientTs, now, deps.maxSkewMs))
    return refusal('stale', requestId, asserted(gate.state));
  if (!gate.allowed) return refusal('consent-missing', requestId, asserted(gate.state));
  if (tenant.needsProof && !(await isProven(deps, tenant, plaintext.consent))) {
    return refusal('consent-missing', requestId, asserted(gate.state));
  }

  const signed = { method: 'POST', target: input.target, headers, https: input.https };
  const declaredAgentId = await deps.botAuth(signed, now);

  return settle(deps, input, {
    tenant,
    now,
    nonce: nonceKey(plaintext.nonce),
    consentState: gate.state,
    declaredAgentId,
    weighed: weigh(tenant, read, input, currentEpoch(now, deps.epochDays)),
  });
}
