import type { AgentRefusal } from '../agents/door-service.ts';
import { TenantGone } from '../lib/errors.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { NO_CONSENT_STATE } from './consent-gate.ts';
import type { Recorder } from './ports.ts';
import type { Verdict } from './verdict/verdict.ts';

/**
 * Stores a refusal at the door as a decision, so that the log anchors it, retention deletes it and a review
 * can be filed about it (ADR 0109). It has no device, no address and no signal.
 */
export function createRecordRefusal(recorder: Recorder, salt: () => string) {
  return async ({ kid, since }: Tenant, refusal: AgentRefusal): Promise<void> => {
    const { requestId: nonce, at } = refusal;
    const entry = {
      kid,
      identified: null,
      verdict: refusedVerdict(refusal),
      shadow: null,
      salt: salt(),
      summary: null,
      webhooks: [],
    };
    const claim = { kid, since, nonce, datedAt: at };
    const recorded = await recorder.record({ claim, device: null, decide: () => entry });
    if (typeof recorded === 'string') throw new TenantGone();
  };
}

function refusedVerdict({ requestId, at, outcome, decided }: AgentRefusal): Verdict {
  const { status, agent, reason } = outcome;
  const { action, row, path } = decided;
  return {
    requestId,
    decidedAt: at,
    class: agent === null ? 'unknown' : 'declared_agent',
    durable: null,
    epoch: null,
    confidence: 0,
    suspectScore: 0,
    smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
    needsAttestation: false,
    declaredAgentId: agent,
    signature: { status, reason },
    door: { action, row, path },
    consentState: NO_CONSENT_STATE,
    rules: [],
    defenses: [],
    overridden: false,
    monitor: false,
    incomplete: false,
    policyVersion: 'agents.policy',
  };
}
