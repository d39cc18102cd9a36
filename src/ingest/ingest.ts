import type { AgentOutcome } from '../agents/reasons.ts';
import type { BotAuth } from '../agents/verify.ts';
import type { Config } from '../config.ts';
import type { ConsentEvent } from '../consent/decide.ts';
import type { Grants } from '../consent/doubts-store.ts';
import type { ProveConsent } from '../consent/proven-purposes-service.ts';
import { hasGpcHeader, type RequestTier } from '../http/request.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import { type Random, sha256 } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import type { Address } from '../lib/ip.ts';
import type { Plaintext } from '../schema/bundle.ts';
import {
  type ConsentState,
  INGEST_STATUS,
  type IngestReason,
  type IngestResponse,
} from '../schema/responses.ts';
import { readSignals } from '../schema/signals.ts';
import type { NoteVisit } from '../tenants/key-use-store.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { consentGate, NO_CONSENT_STATE, proveConsent } from './consent-gate.ts';
import { isFresh, readPlaintext, reasonForNoTenant, type Unsealed } from './open.ts';
import type { RecordEntry, Recorded, Recorder, Sighting, TenantLookup } from './ports.ts';
import { maySupersede, type Sessions, type Updates } from './session.ts';
import { type Classification, classify, policyOf } from './verdict/classify.ts';
import { type Facts, readFacts } from './verdict/facts.ts';
import {
  currentEpoch,
  type Identity,
  identifiedOn,
  identify,
  isCoarse,
  type KnownDevice,
  keySignals,
  mayBeShared,
  type SharedIdLimits,
} from './verdict/identity.ts';
import { decide, readGiver, type Verdict } from './verdict/verdict.ts';

/** Makes the token that lets this browser, in this session, ask about this request (contract 3.5). */
export type IssueToken = (grant: {
  readonly kid: string;
  readonly requestId: string;
  readonly session: string;
  readonly origin: string;
  readonly now: number;
  /** The principal whose consent was proven. */
  readonly principalId?: string | undefined;
}) => string;

/** A server passes its stores; `gpd replay` passes functions that write nothing. */
export interface IngestServices {
  readonly config: SharedIdLimits & Pick<Config, 'max_clock_skew' | 'epoch_days'>;
  readonly tenants: TenantLookup;
  /** The server's time; a replay answers with the bundle's own. */
  readonly now: (plaintext: Plaintext) => number;
  /** @throws {Unavailable} when the server's clock is behind */
  readonly requireClock: () => void;
  readonly proveConsent: ProveConsent;
  readonly grants: Pick<Grants, 'find' | 'note'>;
  readonly sessions: Pick<Sessions, 'has'>;
  readonly updates: Updates;
  readonly botAuth: BotAuth;
  readonly recorder: Recorder;
  readonly random: Random;
  readonly noteVisit: NoteVisit;
  readonly issueToken: IssueToken;
}

/** The request that brought a bundle, behind the trust boundary. */
export interface IngestInput extends RequestTier {
  readonly requestId: string;
  /** The request target as sent: `/_fp/i/v1`. */
  readonly target: string;
  /** The body as it came, where a header has its digest. */
  readonly body?: Uint8Array | undefined;
  /** The client behind the trust boundary. It is used and never stored. */
  readonly client: Address | null;
  /** Salted hash of the client's network, good for one day. */
  readonly network: string;
  /** The value that this response's gp_session cookie will have. */
  readonly session: string;
}

/**
 * Answers one bundle (contract section 3). The steps run in this order, and the first refusal is the answer.
 * Nothing is written before step 9, so a refusal for missing consent leaves the database as it was.
 * @throws {Refusal} 401 for a session that may not supersede the request that the bundle names
 * @throws {Unavailable} when nothing was written and the caller may try again
 */
export async function ingest(
  services: IngestServices,
  unsealed: Unsealed,
  input: IngestInput,
): Promise<IngestAnswer> {
  const { requestId, target, headers, https, body } = input;
  // 1. Open. A missing tenant, a wrong key and a malformed plaintext look alike to a caller without the key.
  const opened = readPlaintext(unsealed, services.tenants);
  if (!opened.ok) return refusal(opened.reason, requestId);
  const { tenant } = opened;
  const { clientTs, after, context, consent: receipt, signals } = opened.plaintext;

  // 2. Read the time and the signals: an unknown field is ignored, a malformed group is null.
  services.requireClock();
  const now = services.now(opened.plaintext);
  const parsed = readSignals(signals);

  // 3. Consent gate, after GPC. A stale bundle is refused as stale, and its answer has the consent state too.
  const consent = consentGate(tenant, receipt, { inHeader: hasGpcHeader(headers), inSignals: parsed.gpc });
  const { asserted, claimedGrant, mustProve } = consent;
  if (!isFresh(clientTs, now, services.config.max_clock_skew)) return refusal('stale', requestId, asserted);
  if (!consent.isAllowed) return refusal('consent-missing', requestId, asserted);

  // 4. Facts: the browser's report about itself, and the network's view of it.
  const facts = readFacts(parsed, input);
  // 5. Identity: an exact match on the stable signals, or nobody.
  const identity = identify(tenant, facts, currentEpoch(now, services.config.epoch_days));
  // 6. Classify by the tenant's rules. No later step looks at a signal.
  const judged = judge(tenant, facts, identity);

  // 7. Prove the consent, where the tenant wants that or the bundle says that a person overruled GPC.
  const consentState = mustProve ? await proveConsent(services, tenant, consent) : asserted;
  if (!consentState) return refusal('consent-missing', requestId, asserted);

  // 8. Find the grant that the bundle names. After the consent: a person who withdrew gets that answer first.
  const grant = claimedGrant && (await services.grants.find(claimedGrant));
  const later = { after, cookie: headers['cookie']?.toString(), now, claimedGrant, grant };
  if (!(await maySupersede(services, tenant, later))) throw new Refusal('unauthenticated');
  // 9. Agent signature: a valid one declares the agent, any other nobody. It counts for this bundle only.
  const nonce = hashNonce(opened.plaintext.nonce);
  const signed = { method: 'POST', target, headers, https, bundle: `${tenant.kid}|${nonce}`, body };
  const agent = await services.botAuth(signed, now);

  // 10. Look the device up, decide on that and write, in one transaction.
  const visit = { tenant, now, nonce, clientTs, after, context, judged, consentState, agent, grant };
  const recorded = await services.recorder.record(sightingOf(services, input, visit));
  if (typeof recorded === 'string') return refuseUnrecorded(recorded, unsealed, requestId, consentState);
  services.noteVisit(tenant, 'judged', ...(judged.isWorkerless ? (['workerless'] as const) : []));

  // 11. Note on the grant who gave it. The verdict is already recorded, so it is answered even if this fails.
  const giver = { class: readGiver(recorded.verdict), at: now };
  const askAgain = grant && claimedGrant && (await services.grants.note(claimedGrant, grant, giver));
  // 12. Respond, with a token if the page is the tenant's and somebody was identified.
  const principalId = mustProve ? claimedGrant?.principalId : undefined;
  return respond(services, input, visit, {
    verdict: recorded.verdict,
    askAgain: askAgain === true,
    principalId,
  });
}

const NONCE_HASH_BYTES = 16;

/** base64url. */
function hashNonce(nonce: string): string {
  return sha256(nonce).subarray(0, NONCE_HASH_BYTES).toString('base64url');
}

/** Reduces the signals to what later steps need: ids of rules, weights, keyed hashes and flags. */
function judge(tenant: Tenant, facts: Facts, identity: Identity | null) {
  return {
    identity,
    classification: classify(facts, policyOf(tenant.policy).rules),
    shadow: tenant.shadow && classify(facts, policyOf(tenant.shadow).rules),
    summary: identity && tenant.populationKey && keySignals(tenant.populationKey, facts),
    defenses: facts.defenses,
    incomplete: facts.incomplete,
    isCoarse: isCoarse(facts),
    /** True if no worker ran, or it did not answer. */
    isWorkerless: facts.signals.worker === null,
  };
}

/** All inputs of the verdict except the device's history. A batch holds many of them while it waits. */
interface Visit {
  readonly tenant: Tenant;
  readonly now: number;
  /** Hash of the bundle's nonce. */
  readonly nonce: string;
  readonly clientTs: number;
  /** The request that this one supersedes. */
  readonly after: string | undefined;
  /** The page's name for what the verdict is for. */
  readonly context: string | undefined;
  readonly judged: Readonly<ReturnType<typeof judge>>;
  readonly consentState: ConsentState;
  readonly agent: AgentOutcome;
  readonly grant: ConsentEvent | null;
}

function sightingOf(services: IngestServices, input: IngestInput, visit: Visit): Sighting {
  const { kid, since } = visit.tenant;
  const { identity } = visit.judged;
  return {
    claim: { kid, since, nonce: visit.nonce, datedAt: visit.clientTs },
    device: identity && { kid, durable: identity.durable, network: input.network, day: dayOf(visit.now) },
    decide: (known) => decideOn(services, input, visit, known ?? UNKNOWN_DEVICE),
  };
}

const dayOf = (now: number): number => Math.floor(now / DAY);

const UNKNOWN_DEVICE: KnownDevice = {
  seen: false,
  neverAutomation: false,
  marked: false,
  spread: { networksToday: 0, pairsOfWeek: 0, tenantPairsOfWeek: 0 },
};
/** The lifetime of the transparency token (contract 3.5). */
const SUMMARY_TTL_MS = 5 * MINUTE;
export const SALT_BYTES = 16;

/** Decides the verdict with the facts known about the device, and what to write. */
function decideOn(
  { config, random }: IngestServices,
  { requestId, network, client }: IngestInput,
  { tenant, now, after, context, judged, consentState, agent, grant }: Visit,
  known: KnownDevice,
): RecordEntry {
  const { identity, summary, defenses, incomplete } = judged;
  const day = dayOf(now);
  const decideBy = (classification: Classification, policyVersion: string): Verdict =>
    decide({
      requestId,
      now,
      identity,
      known,
      classification,
      defenses,
      agent,
      needsAttestation: judged.isCoarse || mayBeShared(known, config),
      consentState,
      policyVersion,
      monitor: tenant.isMonitor(agent.agent, client),
      incomplete,
      grantSeq: grant?.seq,
      context,
    });
  const verdict = decideBy(judged.classification, policyOf(tenant.policy).version);
  const shadow = judged.shadow && tenant.shadow && decideBy(judged.shadow, policyOf(tenant.shadow).version);
  return {
    kid: tenant.kid,
    identified: identity && identifiedOn(identity, config.epoch_days, { network, day, marked: known.marked }),
    verdict,
    shadow: shadow && { policyVersion: shadow.policyVersion, class: shadow.class, day },
    salt: random(SALT_BYTES).toString('base64url'),
    summary: summary && { ...summary, expiresAt: now + SUMMARY_TTL_MS },
    webhooks: tenant.decisionWebhooks,
    after,
  };
}

/** A tenant that was removed meanwhile looks as if it had never existed. */
function refuseUnrecorded(
  reason: Extract<Recorded, string>,
  { symmetric }: Unsealed,
  requestId: string,
  consentState: ConsentState,
): IngestAnswer {
  if (reason === 'gone') return refusal(reasonForNoTenant(symmetric), requestId);
  return refusal(reason, requestId, consentState);
}

/** The origin of the page, where it is the tenant's. */
function firstPartyOrigin({ origin }: IngestInput['headers'], tenant: Tenant): string | null {
  return typeof origin === 'string' && tenant.origins.has(origin) ? origin : null;
}

interface Answered {
  readonly verdict: Verdict;
  readonly askAgain: boolean;
  /** The principal whose consent was proven. */
  readonly principalId: string | undefined;
}

function respond(
  services: IngestServices,
  { requestId, session, headers }: IngestInput,
  { tenant, now, judged: { identity } }: Visit,
  { verdict, askAgain, principalId }: Answered,
): IngestAnswer {
  const response = verdictResponse(verdict, identity?.visitorId ?? null);
  if (askAgain) response.askAgain = true;
  const origin = identity && firstPartyOrigin(headers, tenant);
  if (origin !== null) {
    const { kid } = tenant;
    response.transparencyToken = services.issueToken({ kid, requestId, session, origin, now, principalId });
  }
  return { status: 200, response };
}

// The answers.

export interface IngestAnswer {
  readonly status: number;
  readonly response: IngestResponse;
}

/** Contract 3.1: on a refusal the class is unknown, nobody is identified and there is no token. */
export function refusal(
  reason: Exclude<IngestReason, 'ok'>,
  requestId: string,
  consentState: ConsentState = NO_CONSENT_STATE,
): IngestAnswer {
  const response: IngestResponse = {
    class: 'unknown',
    visitorId: null,
    deviceId: null,
    declaredAgentId: null,
    confidence: 0,
    suspectScore: null,
    smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
    needsAttestation: false,
    consentState,
    reason,
    requestId,
  };
  return { status: INGEST_STATUS[reason], response };
}

/** The answer for a verdict, now or when the backend reads it later. */
export function verdictResponse(verdict: Verdict, visitorId: string | null): IngestResponse {
  return {
    class: verdict.class,
    visitorId,
    deviceId: null,
    declaredAgentId: verdict.declaredAgentId,
    confidence: verdict.confidence,
    suspectScore: verdict.suspectScore,
    smartSignals: verdict.smartSignals,
    needsAttestation: verdict.needsAttestation,
    consentState: verdict.consentState,
    reason: 'ok',
    requestId: verdict.requestId,
    ...(verdict.attested && { attested: verdict.attested }),
  };
}
