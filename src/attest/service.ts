import { isConfirmed } from '../ingest/devices-store.ts';
import { type IssueToken, verdictResponse } from '../ingest/ingest.ts';
import type { RecordEntry } from '../ingest/ports.ts';
import type { RecordAlone } from '../ingest/store.ts';
import {
  confidenceOf,
  currentEpoch,
  identifiedOn,
  type KnownDevice,
  visitorIdOf,
} from '../ingest/verdict/identity.ts';
import { isReconciled, reconcile } from '../ingest/verdict/verdict.ts';
import { DAY } from '../lib/clock.ts';
import { hmacSha256Text, sha256 } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import type { IngestResponse } from '../schema/responses.ts';
import type { Installation } from '../tenants/directory.ts';
import type { Tenant } from '../tenants/tenant.ts';
import {
  type AdmissionParts,
  type Admitted,
  admit,
  type PasskeyCaller,
  requireConsent,
} from './admit-service.ts';
import {
  type Ceremony,
  type CeremonyOutcome,
  challengeKeyOf,
  createChallenge,
  Failed,
  isCloned,
  type Presentation,
  type Presented,
  publicKeyOf,
  readChallenge,
  readCredential,
  verifyCreated,
  verifyUsed,
} from './ceremony.ts';
import { addCredential, findCredential, type StoredPasskey, takeCredential } from './credential-store.ts';

/** Distinguishes identical devices by a passkey (contract-2 section 16). */

/**
 * A ceremony has two acts. Both throw these: `unauthenticated` for a token that does not hold,
 * `consent-missing`, `no-retained-data` where nothing has to be distinguished, and `attestation-failed` for
 * every failed ceremony alike.
 */
export interface AttestService {
  /** Offers a challenge to a browser whose id others share. */
  options(asker: PasskeyCaller, ceremony: Ceremony): Promise<AttestOptions>;
  /** Moves the visit to the device of the passkey that answers the challenge. */
  verify(asker: PasskeyCaller, credential: unknown): Promise<IngestResponse>;
}

interface AttestOptions {
  readonly ceremony: Ceremony;
  readonly publicKey: ReturnType<typeof publicKeyOf>;
}

export interface AttestParts
  extends AdmissionParts,
    Pick<Installation, 'config' | 'clock' | 'random' | 'serverSecret'> {
  readonly record: RecordAlone;
  readonly issueToken: IssueToken;
  /** Counts the outcome of a ceremony of this tenant. */
  readonly onOutcome: (outcome: CeremonyOutcome, kid: string) => void;
}

const USER_ID_BYTES = 16;
const SALT_BYTES = 16;

/** The label keeps the id of a passkey apart from those of signals, which are MACs of 32-byte hashes. */
const durableOf = ({ durableKey }: Tenant, credentialId: string): string =>
  hmacSha256Text(durableKey, `gpd/passkey/v1 ${credentialId}`);

interface Proven {
  readonly durable: string;
  readonly credential: StoredPasskey;
  /** The signature counter that is stored; null for a new passkey. */
  readonly storedCounter: number | null;
  /** True if a review found that a person uses the device of the visit. */
  readonly isVisitConfirmed: boolean;
}

/** @throws {Failed} */
async function prove(deps: AttestParts, admitted: Admitted, presentation: Presentation): Promise<Proven> {
  const { kid, tenant, origin, rpId, verdict } = admitted;
  const { challenge } = presentation;
  const expected = { challenge, origin, rpId };
  const durable = durableOf(tenant, presentation.credential.id);
  const isVisitConfirmed =
    verdict.durable !== null && (await isConfirmed(deps.database, kid, verdict.durable));
  if (presentation.ceremony === 'create') {
    const credential = await verifyCreated(presentation.credential, expected);
    if (!credential) throw new Failed('signature');
    return { durable, credential, storedCounter: null, isVisitConfirmed };
  }
  const stored = await findCredential(deps.database, { kid, durable });
  if (!stored) throw new Failed('unknown');
  const counter = await verifyUsed(presentation.credential, stored.publicKey, expected);
  if (counter === null) throw new Failed('signature');
  if (isCloned(stored.counter, counter)) throw new Failed('cloned');
  return { durable, credential: { ...stored, counter }, storedCounter: stored.counter, isVisitConfirmed };
}

/**
 * Moves the verdict, with its class, score and rules, to the device of the passkey. A review of that device
 * counts, and a review of the visit's device since the visit.
 */
function decideOn(
  { config: { epoch_days: epochDays }, random }: AttestParts,
  { tenant, verdict }: Admitted,
  { requestId, network }: PasskeyCaller,
  proven: Proven,
  { known: device, now }: { readonly known: KnownDevice; readonly now: number },
): RecordEntry {
  const { durable, credential, isVisitConfirmed } = proven;
  const day = Math.floor(now / DAY);
  const epoch = currentEpoch(now, epochDays);
  const identity = { durable, epoch, visitorId: visitorIdOf(tenant, durable, epoch) };
  const isReviewed = (device.neverAutomation || isVisitConfirmed) && isReconciled(verdict.class);
  const reconciled = isReviewed ? { ...reconcile(verdict), overridden: true } : verdict;
  return {
    kid: tenant.kid,
    identified: identifiedOn(identity, epochDays, { network, day, marked: device.marked }),
    verdict: {
      ...reconciled,
      requestId,
      decidedAt: now,
      durable,
      epoch,
      confidence: confidenceOf(identity, device.seen),
      needsAttestation: false,
      attested: { by: 'passkey', deviceBound: credential.deviceBound },
    },
    shadow: null,
    salt: random(SALT_BYTES).toString('base64url'),
    summary: null,
    webhooks: tenant.decisionWebhooks,
  };
}

/** Challenge, credential and decision are claimed and written together. @throws {Failed} */
async function recordProof(
  deps: AttestParts,
  admitted: Admitted,
  asker: PasskeyCaller,
  { proven, challenge, madeAt }: { proven: Proven; challenge: string; madeAt: number },
): Promise<RecordEntry> {
  const { kid, tenant } = admitted;
  const { durable, credential, storedCounter } = proven;
  const now = deps.clock();
  const nonce = sha256(`gpd/attest ${challenge}`).subarray(0, 16).toString('base64url');
  const recorded = await deps.record(
    {
      claim: { kid, since: tenant.since, nonce, datedAt: madeAt },
      device: { kid, durable, network: asker.network, day: Math.floor(now / DAY) },
      decide: (known) => decideOn(deps, admitted, asker, proven, { known: known as KnownDevice, now }),
    },
    async (tx) => {
      const key = { kid, durable };
      const result =
        storedCounter === null
          ? await addCredential(tx, key, credential, now)
          : await takeCredential(tx, key, { from: storedCounter, to: credential.counter }, now);
      if (!result) throw new Failed(storedCounter === null ? 'unknown' : 'cloned');
    },
  );
  if (recorded === 'gone') throw new Refusal('unauthenticated');
  if (typeof recorded === 'string') throw new Failed('replay');
  return recorded;
}

async function attest(deps: AttestParts, asker: PasskeyCaller, credentialJson: unknown) {
  const admitted = await admit(deps, asker);
  const { kid, token, rpId, session, origin, principalId } = admitted;
  const { requestId } = asker;
  const presentation = readCredential(credentialJson);
  if (!presentation) throw new Failed('malformed');
  const { ceremony, challenge } = presentation;
  const binding = { token, kid, ceremony, rpId };
  const read = readChallenge(challengeKeyOf(deps), deps.clock(), challenge, binding);
  if (read === null) throw new Failed('challenge');
  const proven = await prove(deps, admitted, presentation);
  // Checked again, because a signature takes time, and consent may have been withdrawn meanwhile.
  await requireConsent(deps, admitted, asker.gpc);
  const entry = await recordProof(deps, admitted, asker, { proven, challenge, madeAt: read.madeAt });
  deps.onOutcome(proven.storedCounter === null ? 'created' : 'used', kid);
  const now = deps.clock();
  const response: IngestResponse = verdictResponse(entry.verdict, entry.identified?.visitorId ?? null);
  response.transparencyToken = deps.issueToken({ kid, requestId, session, origin, now, principalId });
  return response;
}

/** A client learns neither how a ceremony failed nor what is known of the passkey: metrics and the log do. */
async function answerAlike<T>(deps: AttestParts, presented: Presented, ceremony: Promise<T>): Promise<T> {
  try {
    return await ceremony;
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    deps.onOutcome(error.outcome, deps.openToken(presented)?.kid ?? '');
    throw new Refusal('attestation-failed');
  }
}

export function createAttestService(deps: AttestParts): AttestService {
  return {
    async options(asker, ceremony) {
      const { token, kid, rpId } = await admit(deps, asker);
      const { random, clock } = deps;
      const binding = { token, kid, ceremony, rpId };
      const challenge = createChallenge(challengeKeyOf(deps), random, clock(), binding);
      const userId = random(USER_ID_BYTES).toString('base64url');
      return { ceremony, publicKey: publicKeyOf(ceremony, { rpId, challenge, userId }) };
    },
    verify: (asker, credential) => answerAlike(deps, asker.presented, attest(deps, asker, credential)),
  };
}
