import type { BotAuthRequest } from '../agents/message.ts';
import type { ProveConsent } from '../consent/proven-purposes-service.ts';
import type { RequestTier } from '../http/network.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import type { Address } from '../lib/ip.ts';
import type { Random } from '../lib/random.ts';
import type { ConsentReceipt } from '../schema/bundle.ts';
import type { ConsentState } from '../schema/responses.ts';
import { type AttestationLimits, isShared } from './attestation.ts';
import type { Classification } from './classify/classify.ts';
import { NEEDED_PURPOSE } from './consent-gate.ts';
import { decide } from './decide.ts';
import { earliestExpiry, nonceExpiry } from './freshness.ts';
import { epochEnd } from './identity.ts';
import { asserted, type JudgeDeps, type Judged, judge } from './judge.ts';
import { ofNoTenant, type Unsealed } from './open.ts';
import type { IngestTenant, IssueToken, KnownDevice, RecordEntry, Recorder } from './ports.ts';
import { type IngestAnswer, refusal, verdictResponse } from './respond.ts';

/** What the trust boundary knows of the request that brought a bundle. */
export interface IngestInput extends RequestTier {
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

export interface IngestDeps extends JudgeDeps {
  readonly recorder: Recorder;
  /** The smallest skew by which a bundle that is fresh now may have been claimed: a setting that was raised, another node. */
  readonly leastSkewMs: () => number;
  /** Web Bot Auth: the agent that signed this request, or null. */
  readonly botAuth: (request: BotAuthRequest, now: number) => Promise<string | null>;
  readonly proveConsent: ProveConsent;
  readonly issueToken: IssueToken;
  readonly random: Random;
  readonly attestation: AttestationLimits;
}

const UNKNOWN_DEVICE: KnownDevice = {
  seen: false,
  neverAutomation: false,
  marked: false,
  spread: { networksToday: 0, pairsOfWeek: 0, tenantPairsOfWeek: 0 },
};
/** As long as the transparency token lives (contract 3.5). */
const SUMMARY_TTL_MS = 5 * MINUTE;
const SALT_BYTES = 16;

/** What of the consent is proven: a tenant that wants that gets no verdict on an assertion (contract 3.3). */
async function prove(
  deps: IngestDeps,
  { tenant, consentState }: Judged,
  { principalId, proof }: ConsentReceipt,
): Promise<ConsentState | null> {
  if (principalId === undefined || proof === undefined) return null;
  const { kid } = tenant;
  const asked = { kid, principalId, needed: NEEDED_PURPOSE, purposes: consentState.purposes, proof };
  const purposes = await deps.proveConsent(asked);
  return purposes.includes(NEEDED_PURPOSE) ? { ...consentState, purposes: [...purposes] } : null;
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

/** decide, on what is known of the device, and what is to be written of it. */
function settle(
  deps: IngestDeps,
  { requestId, network, client }: IngestInput,
  judged: Judged,
  declaredAgentId: string | null,
  known: KnownDevice,
): RecordEntry {
  const { tenant, now, consentState, weighed } = judged;
  const { identity } = weighed;
  const day = Math.floor(now / DAY);
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
      monitor: tenant.isMonitor(declaredAgentId, client),
      incomplete: weighed.incomplete,
    });
  const verdict = decideBy(weighed.classification, tenant.policy.version);
  const shadow = weighed.shadow && tenant.shadow && decideBy(weighed.shadow, tenant.shadow.version);
  return {
    kid: tenant.kid,
    identified: identity && {
      durable: identity.durable,
      visitorId: identity.visitorId,
      epoch: identity.epoch,
      epochEndsAt: epochEnd(identity.epoch, deps.epochDays),
      network,
      day,
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
  };
}

/**
 * record* (look up → decide → write) → respond, in a frame that does not hold the signals: what a frame holds while it
 * waits for the database, the collector copies for every bundle under way.
 */
async function conclude(
  deps: IngestDeps,
  input: IngestInput,
  judged: Judged,
  declaredAgentId: string | null,
): Promise<IngestAnswer> {
  const { tenant, now, consentState, weighed } = judged;
  const { identity } = weighed;
  const { kid } = tenant;
  const day = Math.floor(now / DAY);
  const recorded = await deps.recorder.record({
    claim: {
      kid,
      since: tenant.since,
      nonce: judged.nonce,
      expiresAt: nonceExpiry(now, deps.maxSkewMs),
      earliestExpiry: earliestExpiry(judged.clientTs, deps.leastSkewMs()),
    },
    device: identity && { kid, durable: identity.durable, network: input.network, day },
    settle: (known) => settle(deps, input, judged, declaredAgentId, known ?? UNKNOWN_DEVICE),
  });
  if (recorded === 'gone') return refusal(ofNoTenant(judged.symmetric), input.requestId);
  if (recorded === 'replay' || recorded === 'stale') return refusal(recorded, input.requestId, consentState);

  const response = verdictResponse(recorded.verdict, identity?.visitorId ?? null);
  const transparencyToken = identity ? tokenFor(deps, input, tenant, now) : undefined;
  if (transparencyToken !== undefined) response.transparencyToken = transparencyToken;
  return { status: 200, response };
}

async function admit(deps: IngestDeps, input: IngestInput, judged: Judged): Promise<IngestAnswer> {
  const { now, toProve } = judged;
  const consentState = toProve ? await prove(deps, judged, toProve) : judged.consentState;
  if (!consentState) return refusal('consent-missing', input.requestId, asserted(judged.consentState));
  const { target, headers, https } = input;
  const bundle = `${judged.tenant.kid}|${judged.nonce}`;
  const declared = await deps.botAuth({ method: 'POST', target, headers, https, bundle }, now);
  return conclude(deps, input, toProve ? { ...judged, consentState } : judged, declared);
}

/**
 * read → freshness → consent gate → network tier → identity → classify → bot auth* → record* → respond.
 * Cheap refusals come first; only the starred stages touch the world, and nothing is written before record. The bundle
 * is garbage before the first of them.
 */
export async function ingest(
  deps: IngestDeps,
  unsealed: Unsealed,
  input: IngestInput,
): Promise<IngestAnswer> {
  const judged = judge(deps, unsealed, input, input.requestId);
  return 'status' in judged ? judged : admit(deps, input, judged);
}
