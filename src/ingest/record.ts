import { DAY, MINUTE } from '../lib/clock.ts';
import { collisionChance, isShared } from './attestation.ts';
import type { Classification } from './classify/classify.ts';
import { decide } from './decide.ts';
import type { Evaluated } from './evaluate.ts';
import { earliestExpiry, nonceExpiry } from './freshness.ts';
import { epochEnd } from './identity.ts';
import { ofNoTenant } from './open.ts';
import { refuse, STAGES } from './pipeline.ts';
import type { IngestDeps, IngestInput, KnownDevice, RecordEntry } from './ports.ts';
import type { IngestAnswer } from './respond.ts';

const UNKNOWN_DEVICE: KnownDevice = {
  seen: false,
  neverAutomation: false,
  marked: false,
  spread: { networksToday: 0, pairsOfWeek: 0, tenantPairsOfWeek: 0 },
};
/** As long as the transparency token lives (contract 3.5). */
const SUMMARY_TTL_MS = 5 * MINUTE;
const SALT_BYTES = 16;

function tokenFor(
  deps: IngestDeps,
  input: IngestInput,
  { tenant, now, toProve }: Evaluated,
): string | undefined {
  const { origin } = input.headers;
  if (typeof origin !== 'string' || !tenant.origins.has(origin)) return undefined;
  const { requestId, session } = input;
  const principalId = toProve?.principalId;
  return deps.issueToken({ kid: tenant.kid, requestId, session, origin, now, principalId });
}

const mayBeShared = (known: KnownDevice, { attestation, collisionRisk }: IngestDeps): boolean =>
  isShared(known.spread, attestation) || collisionChance(known) > collisionRisk;

/** decide, on what is known of the device, and what is to be written of it. */
function decideOn(
  deps: IngestDeps,
  { requestId, network, client }: IngestInput,
  evaluated: Evaluated,
  declaredAgentId: string | null,
  known: KnownDevice,
): RecordEntry {
  const { tenant, now, consentState, classified } = evaluated;
  const { identity } = classified;
  const day = Math.floor(now / DAY);
  const decideBy = (classification: Classification, policyVersion: string) =>
    decide({
      requestId,
      now,
      identity,
      known,
      classification,
      defenses: classified.defenses,
      declaredAgentId,
      needsAttestation: classified.coarse || mayBeShared(known, deps),
      consentState,
      policyVersion,
      monitor: tenant.isMonitor(declaredAgentId, client),
      incomplete: classified.incomplete,
    });
  const verdict = decideBy(classified.classification, tenant.policy.version);
  const shadow = classified.shadow && tenant.shadow && decideBy(classified.shadow, tenant.shadow.version);
  return {
    kid: tenant.kid,
    identified: identity && {
      ...identity,
      epochEndsAt: epochEnd(identity.epoch, deps.epochDays),
      network,
      day,
      marked: known.marked,
    },
    verdict,
    shadow: shadow && { policyVersion: shadow.policyVersion, class: shadow.class, day },
    salt: deps.random(SALT_BYTES).toString('base64url'),
    summary: classified.summary && {
      ...classified.summary,
      newDevice: !known.seen,
      counts: !known.marked,
      expiresAt: now + SUMMARY_TTL_MS,
    },
    webhooks: tenant.decisionWebhooks,
  };
}

/**
 * record* (look up, decide, write) → respond, in a frame that does not hold the signals: what a frame holds while it
 * waits for the database, the collector copies for every bundle under way.
 */
export async function record(
  deps: IngestDeps,
  input: IngestInput,
  evaluated: Evaluated,
  declaredAgentId: string | null,
): Promise<IngestAnswer> {
  const { tenant, now, consentState, classified } = evaluated;
  const { identity } = classified;
  const { kid } = tenant;
  const day = Math.floor(now / DAY);
  const recorded = await STAGES.record.run(deps, {
    claim: {
      kid,
      since: tenant.since,
      nonce: evaluated.nonce,
      expiresAt: nonceExpiry(now, deps.maxSkewMs),
      earliestExpiry: earliestExpiry(evaluated.clientTs, deps.leastSkewMs()),
    },
    device: identity && { kid, durable: identity.durable, network: input.network, day },
    decide: (known) => decideOn(deps, input, evaluated, declaredAgentId, known ?? UNKNOWN_DEVICE),
  });
  if (recorded === 'gone') return refuse('record', ofNoTenant(evaluated.symmetric), input.requestId);
  if (recorded === 'replay' || recorded === 'stale')
    return refuse('record', recorded, input.requestId, consentState);

  const response = STAGES.respond.run(recorded.verdict, identity?.visitorId ?? null);
  const transparencyToken = identity ? tokenFor(deps, input, evaluated) : undefined;
  if (transparencyToken !== undefined) response.transparencyToken = transparencyToken;
  return { status: 200, response };
}
