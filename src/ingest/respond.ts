import {
  type ConsentState,
  INGEST_STATUS,
  type IngestReason,
  type IngestResponse,
} from '../schema/responses.ts';
import { NO_CONSENT_STATE } from './consent-gate.ts';
import type { Verdict } from './verdict/verdict.ts';

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

/** The answer that a verdict gives, now or when the backend asks for it later. */
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
