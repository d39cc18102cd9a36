import type { ConsentEvent } from '../consent/decide.ts';
import { Refusal } from '../lib/errors.ts';
import { NEEDED_PURPOSE } from './consent-gate.ts';
import { asserted, type Evaluated, evaluate } from './evaluate.ts';
import type { Unsealed } from './open.ts';
import { refuse, STAGES } from './pipeline.ts';
import type { IngestDeps, IngestInput } from './ports.ts';
import { record } from './record.ts';
import type { IngestAnswer } from './respond.ts';

/**
 * What of the consent is proven: a tenant that wants that gets no verdict on an assertion (contract 3.3), and none gets one
 * on an assertion that a person overruled GPC.
 */
async function prove(deps: IngestDeps, { tenant, consentState, overGpc, rides }: Evaluated) {
  if (!rides) return null;
  const claimed = [...consentState.purposes, ...overGpc];
  const proven = new Set(await STAGES['consent proof'].run(deps, { ...rides, purposes: claimed, overGpc }));
  const said = new Set(tenant.needsProof ? [] : consentState.purposes);
  const purposes = claimed.filter((purpose) => proven.has(purpose) || said.has(purpose));
  return purposes.includes(NEEDED_PURPOSE) ? { ...consentState, purposes } : null;
}

/** A stolen cookie supersedes no request that is linked to a principal. */
async function maySupersede(
  { sessions, updates }: IngestDeps,
  { headers: { cookie } }: IngestInput,
  { tenant: { kid, refOf }, now, rides }: Evaluated,
  { after, grant }: { readonly after: string; readonly grant: ConsentEvent | null },
): Promise<boolean> {
  if (!sessions.has(cookie?.toString(), kid, after, now)) return false;
  if (await updates.endsChain(kid, after)) return false;
  const linked = await updates.linkedTo(kid, after);
  // Only the browser that was answered the grant can name it: the id of a principal is no secret.
  return linked === null || (grant !== null && rides !== null && refOf(rides.principalId) === linked);
}

/** @throws {Refusal} 401 for a session that may not supersede what the bundle names */
async function admit(deps: IngestDeps, input: IngestInput, evaluated: Evaluated): Promise<IngestAnswer> {
  const { now, rides, mustProve, after, tenant } = evaluated;
  const consentState = mustProve ? await prove(deps, evaluated) : evaluated.consentState;
  if (!consentState)
    return refuse('consent proof', 'consent-missing', input.requestId, asserted(evaluated.consentState));
  const grant = rides && (await STAGES.grant.run(deps, rides));
  // After the consent, which is read again: a person who withdrew gets that answer, whatever the session.
  if (after !== undefined && !(await maySupersede(deps, input, evaluated, { after, grant })))
    throw new Refusal('unauthenticated');
  const { target, headers, https } = input;
  const bundle = `${tenant.kid}|${evaluated.nonce}`;
  const signed = { method: 'POST', target, headers, https, bundle };
  const declared = await STAGES['bot auth'].run(deps, signed, now);
  return record(deps, input, { ...evaluated, consentState }, { declared, grant });
}

/** Runs the stages of pipeline.ts. The bundle is garbage before the first of them that waits. */
export async function ingest(deps: IngestDeps, unsealed: Unsealed, input: IngestInput) {
  const evaluated = evaluate(deps, unsealed, input, input.requestId);
  return 'status' in evaluated ? evaluated : admit(deps, input, evaluated);
}
