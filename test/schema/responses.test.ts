import { describe, expect, it } from 'vitest';
import { INGEST_STATUS, ingestResponseSchema, visitorClassSchema } from '../../src/schema/responses.ts';
import { createConsentState } from '../support/make.ts';

const response = {
  class: 'human',
  visitorId: 'v'.repeat(22),
  deviceId: null,
  declaredAgentId: null,
  confidence: 0.6,
  suspectScore: 0,
  smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
  needsAttestation: false,
  consentState: createConsentState(),
  reason: 'ok',
  requestId: 'req_01',
};

describe('the ingest response', () => {
  it('maps each reason to one status (interface section 7)', () => {
    expect(INGEST_STATUS).toEqual({
      ok: 200,
      'consent-missing': 451,
      replay: 409,
      stale: 400,
      'decrypt-failed': 400,
      'unknown-key': 401,
      unknown: 500,
    });
  });

  it('has the four classes of the interface', () => {
    expect(visitorClassSchema.options).toEqual([
      'human',
      'declared_agent',
      'undeclared_automation',
      'unknown',
    ]);
  });

  it('may carry a token', () => {
    expect(ingestResponseSchema.parse(response)).toEqual(response);
    expect(ingestResponseSchema.parse({ ...response, transparencyToken: 't' })).toHaveProperty(
      'transparencyToken',
    );
  });

  it.each<[string, object]>([
    ['a deviceId', { deviceId: 'd' }],
    ['incognito', { smartSignals: { ...response.smartSignals, incognito: true } }],
    ['a score above 1', { suspectScore: 1.01 }],
    ['a score below 0', { suspectScore: -0.01 }],
    ['a class of its own', { class: 'bot' }],
    ['a reason of its own', { reason: 'rate-limited' }],
  ])('never has %s', (_what, change) => {
    expect(ingestResponseSchema.safeParse({ ...response, ...change }).success).toBe(false);
  });
});
