import { describe, expect, it } from 'vitest';
import { NO_CONSENT_STATE } from '../../src/ingest/consent-gate.ts';
import { refusal, verdictResponse } from '../../src/ingest/ingest.ts';
import { INGEST_STATUS, type IngestReason, ingestResponseSchema } from '../../src/schema/responses.ts';
import { createConsentState, createVerdict } from '../support/make.ts';

const reasons = (Object.keys(INGEST_STATUS) as IngestReason[]).filter((reason) => reason !== 'ok');

describe('refusal', () => {
  it.each(reasons)('%s: its status, and a body that tells nothing of anybody', (reason) => {
    const { status, response } = refusal(reason as Exclude<IngestReason, 'ok'>, 'req_1');
    expect(status).toBe(INGEST_STATUS[reason]);
    expect(ingestResponseSchema.parse(response)).toEqual(response);
    expect(response).toEqual({
      class: 'unknown',
      visitorId: null,
      deviceId: null,
      declaredAgentId: null,
      confidence: 0,
      suspectScore: null,
      smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
      needsAttestation: false,
      consentState: NO_CONSENT_STATE,
      reason,
      requestId: 'req_1',
    });
  });

  it('tells the consent state where the bundle opened', () => {
    const state = createConsentState({ gpc: true, purposes: [] });
    expect(refusal('consent-missing', 'req_1', state).response.consentState).toEqual(state);
  });
});

describe('verdictResponse', () => {
  it('is the interface’s IngestResponse, and no more', () => {
    const verdict = createVerdict({ rules: [{ id: 'A1', weight: 0.9, kind: 'A' }], defenses: ['brave'] });
    const response = verdictResponse(verdict, 'v'.repeat(22));
    expect(ingestResponseSchema.parse(response)).toEqual(response);
    expect(Object.keys(response).sort()).toEqual(
      Object.keys(ingestResponseSchema.shape)
        .filter((name) => !['transparencyToken', 'attested', 'askAgain'].includes(name))
        .sort(),
    );
    expect(response).toMatchObject({
      reason: 'ok',
      visitorId: 'v'.repeat(22),
      deviceId: null,
      class: 'human',
    });
  });

  it('never lets the durable id out', () => {
    const verdict = createVerdict({ durable: 'the-durable-id' });
    expect(JSON.stringify(verdictResponse(verdict, null))).not.toContain('the-durable-id');
  });
});
