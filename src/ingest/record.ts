import type { ConsentEvent } from '../consent/decide.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import { collisionChance, isShared } from './attestation.ts';
import type { Classification } from './classify/classify.ts';
import { policyOf } from './classify/policy.ts';
import { decide, readGiver } from './decide.ts';
import type { Evaluated } from './evaluate.ts';
import { identifiedOn } from './identity.ts';
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

/** The origin of the page, where it is the tenant's. */
function originOf({ headers: { origin } }: IngestInput, { tenant }: Evaluated): string | null {
  return typeof origin === 'string' && tenant.origins.has(origin) ? origin : null;
}

const mayBeShared = (known: KnownDevice, { attestation, collisionRisk }: IngestDeps): boolean =>
  isShared(known.spread, attestation) || collisionChance(known) > collisionRisk;

/** What the stages before it found of the request. */
interface Found {
  readonly declared: string | null;
  readonly grant: ConsentEvent | null;
}

/** decide, on what is known of the device, and what is to be written of it. */
function decideOn(
  deps: IngestDeps,
  { requestId, network, client }: IngestInput,
  evaluated: Evaluated,
  { declared: declaredAgentId, grant }: Found,
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
      grantSeq: grant?.seq,
    });
  const verdict = decideBy(classified.classification, policyOf(tenant.policy).version);
  const shadow =
    classified.shadow && tenant.shadow && decideBy(classified.shadow, policyOf(tenant.shadow).version);
  return {
    kid: tenant.kid,
    identified: identity && identifiedOn(identity, deps.epochDays, { network, day, marked: known.marked }),
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
    after: evaluated.after,
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
  found: Found,
): Promise<IngestAnswer> {
  const { tenant, now, consentState, classified, rides, mustProve } = evaluated;
  const { identity } = classified;
  const { kid } = tenant;
  const day = Math.floor(now / DAY);
  const recorded = await STAGES.record.run(deps, {
    claim: {
      kid,
      since: tenant.since,
      nonce: evaluated.nonce,
      datedAt: evaluated.clientTs,
    },
    device: identity && { kid, durable: identity.durable, network: input.network, day },
    decide: (known) => decideOn(deps, input, evaluated, found, known ?? UNKNOWN_DEVICE),
  });
  if (recorded === 'gone') return refuse('record', ofNoTenant(evaluated.symmetric), input.requestId);
  if (recorded === 'replay' || recorded === 'stale')
    return refuse('record', recorded, input.requestId, consentState);

  deps.noteVisit(tenant, 'judged', ...(classified.workerless ? (['workerless'] as const) : []));
  const by = { class: readGiver(recorded.verdict), at: now };
  const askAgain = found.grant && rides && (await STAGES.doubt.run(deps, rides, found.grant, by));
  const response = STAGES.respond.run(recorded.verdict, identity?.visitorId ?? null);
  if (askAgain) response.askAgain = true;
  const origin = identity && originOf(input, evaluated);
  if (origin !== null) {
    const { requestId, session } = input;
    const principalId = mustProve ? rides?.principalId : undefined;
    response.transparencyToken = deps.issueToken({ kid, requestId, session, origin, now, principalId });
  }
  return { status: 200, response };
}
