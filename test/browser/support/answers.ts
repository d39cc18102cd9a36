import { INGEST_STATUS, type IngestReason, type IngestResponse } from '../../../src/schema/responses.ts';
import type { Answer } from './site.ts';

/** @returns an answer of gpd's core with nothing in it but the reason */
export function createIngestAnswer(reason: IngestReason): Answer & { readonly body: IngestResponse } {
  return {
    status: INGEST_STATUS[reason],
    body: {
      class: 'unknown',
      visitorId: null,
      deviceId: null,
      declaredAgentId: null,
      confidence: 0,
      suspectScore: null,
      smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
      needsAttestation: false,
      consentState: {
        purposes: [],
        gpc: false,
        gpcSource: 'none',
        version: 0,
        issuedAt: 0,
        basis: 'asserted',
      },
      reason,
      requestId: 'req_01HZZZZZZZZZZZZZZZZZZZZZZZ',
    },
  };
}

/** A receipt that passes the gate. */
export const GRANTED = {
  purposes: ['device-identification'],
  gpc: false,
  version: 3,
  issuedAt: 1_763_629_990_000,
};
