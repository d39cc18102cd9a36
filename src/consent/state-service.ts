import { ConsentStateInvalid } from '../db/meta-store.ts';
import { iso, SECOND } from '../lib/clock.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { Answer } from '../schema/answer.ts';
import type {
  DecisionAnswer,
  refreshedStateSchema,
  StateKey,
  stateResponseSchema,
} from '../schema/consent.ts';
import type { Installation } from '../tenants/directory.ts';
import { DEVICE_ATTESTATION } from '../tenants/purposes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type ConsentDecision, type ConsentEvent, decideConsent } from './decide.ts';
import { createStateSigner } from './state-jws.ts';
import { type ConsentStateReader, isPresent } from './state-store.ts';

/**
 * Reads the choices of a principal purpose by purpose, and issues the signed state from which a site's server
 * renders a page without a call (contract-2 section 20, ADR 0099).
 */

/** @throws {ConsentStateInvalid} */
export function requireTerms({ areTermsAuthentic, kid }: Tenant): void {
  if (!areTermsAuthentic) throw new ConsentStateInvalid(kid);
}

/** @param subject the principal's reference, if the caller may know it */
export function toAnswer(decision: ConsentDecision, subject?: string): DecisionAnswer {
  const { allowed, reason, proof, policyVersion, given } = decision;
  return { allowed, reason, proof, policyVersion, expiresAt: iso(decision.expiresAt), given, subject };
}

/** The last choice about one purpose, with the answer of a check. */
interface Standing {
  readonly purpose: string;
  readonly event: ConsentEvent | null;
  readonly decision: ConsentDecision;
}

interface Reading extends Pick<Installation, 'clock'> {
  readonly reader: ConsentStateReader;
}

/**
 * Reads all purposes of one principal and of those that are joined with it, in one snapshot.
 * @param gpc decides as if the request carried the signal
 * @throws {ConsentStateInvalid}
 */
async function readStandings(
  { reader, clock }: Reading,
  tenant: Tenant,
  principal: string,
  gpc = false,
): Promise<readonly Standing[]> {
  requireTerms(tenant);
  const { kid, stateMac: mac, rules } = tenant;
  const defined = tenant.purposes.map(({ id }) => id);
  const ids = [...new Set([...defined, DEVICE_ATTESTATION])];
  const states = await reader.readAll(ids.map((purpose) => ({ kid, principal, purpose, mac })));
  const now = clock();
  return states.flatMap((stored, i) => {
    const purpose = ids[i] ?? '';
    const { event } = stored;
    // A built-in purpose need not be defined, but a person who agreed to it must find it here.
    if (!event && !defined.includes(purpose)) return [];
    const state = gpc ? { ...stored, gpc } : stored;
    return [{ purpose, event, decision: decideConsent(purpose, state, rules, now) }];
  });
}

function toPurposeAnswer({ purpose, event, decision }: Standing) {
  const definition = event?.definition == null ? {} : { definition: event.definition };
  const over = event?.overGpc === true ? { overGpc: true as const } : {};
  const choice = { choice: event?.choice ?? null, at: iso(event?.at ?? null), ...definition, ...over };
  return { purpose, ...choice, ...toAnswer(decision) };
}

const STATE_SECONDS = 300;

export interface StateParts extends Reading, Pick<Installation, 'database' | 'serverSecret'> {
  /** The public address of this server, the claim `iss`. */
  readonly issuer: () => string;
}

/** All that can be asked about the state of a principal. */
export interface StateService {
  /**
   * Shows the choice and the decision about each purpose, of one snapshot.
   * @param reader a secret key gets the reference of the principal, a browser or a session the signed state
   * @throws {ConsentStateInvalid}
   */
  read(
    tenant: Tenant,
    principalId: string,
    reader: 'secret' | 'person' | 'other',
  ): Promise<Answer<typeof stateResponseSchema>>;
  /** Signs the state after a write of the person. @param seq the entry that was written */
  signAfterWrite(tenant: Tenant, principalId: string, seq: number): Promise<string>;
  /**
   * Signs the present state of the principal that a genuine state of any age is about.
   * @param gpc decides as under a signal of this request, and records nothing
   * @throws {Refusal} `no-data` for a state of nobody: forged, of another tenant, erased or unknown
   */
  refresh(tenant: Tenant, state: string, gpc: boolean): Promise<Answer<typeof refreshedStateSchema>>;
  /** The public key that verifies states. */
  readonly key: StateKey;
}

export function createStateService(parts: StateParts): StateService {
  const { database, clock, issuer } = parts;
  const signer = createStateSigner(parts.serverSecret);

  async function issue({ kid }: Tenant, principal: string, standings: readonly Standing[], minSeq = 0) {
    const purposes = standings.filter(({ decision }) => decision.allowed).map(({ purpose }) => purpose);
    const seq = Math.max(minSeq, ...standings.map(({ event }) => event?.seq ?? 0));
    const iat = Math.floor(clock() / SECOND);
    const claims = { iss: issuer(), kid, sub: principal, iat, exp: iat + STATE_SECONDS, p: purposes, seq };
    return { state: await signer.sign(claims), purposes, seq };
  }

  return {
    key: signer.key,
    async read(tenant, principalId, reader) {
      const principal = tenant.refOf(principalId);
      const standings = await readStandings(parts, tenant, principal);
      return {
        principalId,
        subject: reader === 'secret' ? principal : undefined,
        state: reader === 'person' ? (await issue(tenant, principal, standings)).state : undefined,
        purposes: standings.map(toPurposeAnswer),
      };
    },
    async signAfterWrite(tenant, principalId, seq) {
      const principal = tenant.refOf(principalId);
      const standings = await readStandings(parts, tenant, principal).catch((error: unknown) => {
        // The choice is recorded, so it is answered; a state that cannot be read grants nothing.
        if (error instanceof Unavailable) return [];
        throw error;
      });
      return (await issue(tenant, principal, standings, seq)).state;
    },
    async refresh(tenant, state, gpc) {
      const claims = await signer.verify(state);
      if (claims?.kid !== tenant.kid) throw new Refusal('no-data');
      const standings = await readStandings(parts, tenant, claims.sub, gpc);
      if (!(await isPresent(database, tenant.kid, claims.sub))) throw new Refusal('no-data');
      return issue(tenant, claims.sub, standings);
    },
  };
}
