import { describe, expect, it } from 'vitest';
import { applyPolicy } from '../../src/ingest/verdict/classify.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { tenantPolicySchema } from '../../src/schema/policy.ts';
import { ORIGIN } from '../support/constants.ts';
import { createReceipt, makePlaintext, NOW } from '../support/make.ts';
import { createRawSignals } from '../support/make-signals.ts';
import { HEADERS, run, SETTINGS, type World } from './support.ts';

describe('a good bundle', () => {
  it('is identified, classified, recorded and answered', async () => {
    const { status, response, touched, entries } = await run();
    expect(status).toBe(200);
    expect(response).toMatchObject({
      reason: 'ok',
      class: 'human',
      confidence: 0.6,
      requestId: 'req_1',
      deviceId: null,
    });
    expect(response.visitorId).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(touched).toEqual(['botAuth', 'lookup', 'record']);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({
      kid: 'acme',
      claim: { kid: 'acme', datedAt: NOW },
      identified: {
        visitorId: response.visitorId,
        epoch: 680,
        network: 'network-hash',
        day: 20_412,
      },
      verdict: { requestId: 'req_1', decidedAt: NOW, class: 'human' },
      shadow: null,
    });
  });

  it('throws before it looks at the time of a bundle when the clock is behind', async () => {
    const requireClock = () => {
      throw new Unavailable('behind');
    };
    await expect(run({ plaintext: { clientTs: 0 }, services: { requireClock } })).rejects.toThrow('behind');
  });

  it('leaves no raw value behind: not a signal, not the nonce, not the session', async () => {
    const signals = {
      page: { ...createRawSignals()['page'], language: 'tlh-KX', languages: ['tlh-KX'] },
      graphics: { ...createRawSignals()['graphics'], canvasHash: 'canvas-value', renderer: 'renderer-value' },
      time: { zone: 'Antarctica/Troll' },
      fonts: 'abcdefabcdef',
    };
    const { entries } = await run({ signals });
    const storedText = JSON.stringify(entries);
    expect(JSON.stringify(entries[0]?.verdict)).not.toContain(entries[0]?.identified?.visitorId);
    const values = [
      'tlh-KX',
      'canvas-value',
      'renderer-value',
      'Antarctica',
      'abcdefabcdef',
      'Mozilla',
      'Chrome',
      'session-1',
    ];
    for (const value of [...values, makePlaintext().nonce]) expect(storedText).not.toContain(value);
  });

  it('is a repeat where the device was seen', async () => {
    const { response, entries } = await run({ known: { seen: true, marked: true } });
    expect(response.confidence).toBe(0.99);
    expect(entries[0]?.identified).toMatchObject({ marked: true });
  });

  it('is claimed by a hash of its nonce, and salted anew', async () => {
    const [one, two] = [(await run()).entries[0], (await run()).entries[0]];
    expect(one?.claim.nonce).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(one?.claim.nonce).toBe(two?.claim.nonce);
    expect(one?.salt).not.toBe(two?.salt);
    expect(Buffer.from(one?.salt ?? '', 'base64url')).toHaveLength(16);
  });

  it.each([-300_000, 300_000])('may be %i ms away from the server’s time', async (ms) => {
    expect((await run({ plaintext: { clientTs: NOW + ms } })).response.reason).toBe('ok');
  });

  it('is judged by the server’s own time', async () => {
    const later = NOW + 60 * 86_400_000;
    const { entries } = await run({ services: { now: () => later }, plaintext: { clientTs: later } });
    expect(entries[0]).toMatchObject({ identified: { epoch: 682 }, verdict: { decidedAt: later } });
  });
});

describe('a tenant that wants consent proven', () => {
  it('gets a verdict on a grant that its ledger holds, and is told so', async () => {
    const purposes = ['device-identification', 'ads', 'never-defined'];
    const consent = createReceipt({ purposes, principalId: 'u-1', proof: { seq: 41, hash: 'a'.repeat(64) } });
    const proven = ['device-identification', 'never-defined-either'];
    const world = { tenant: { needsProof: true }, proven, plaintext: { consent } };
    const { status, response, entries, touched } = await run(world);
    expect([status, response.consentState.basis]).toEqual([200, 'proven']);
    // The page’s own assertion does not become a proven purpose.
    expect(response.consentState.purposes).toEqual(['device-identification']);
    expect(entries[0]?.verdict.consentState.purposes).toEqual(['device-identification']);
    expect(touched[0]).toBe('prove acme u-1 device-identification 41');
    expect(JSON.stringify(entries)).not.toContain('u-1');
  });

  it('is never asked where it does not want that', async () => {
    const consent = createReceipt({ principalId: 'u-1', proof: { seq: 41, hash: 'a'.repeat(64) } });
    const { response, touched } = await run({ plaintext: { consent } });
    expect(response.consentState.basis).toBe('asserted');
    expect(touched).toEqual(['grant', 'botAuth', 'lookup', 'record', 'note human']);
  });
});

describe('the token', () => {
  it('is bound to the request, the session and a registered origin', async () => {
    expect((await run()).response.transparencyToken).toBe(`token acme req_1 session-1 ${ORIGIN}`);
  });

  it.each<[string, World]>([
    ['another origin', { input: { headers: { ...HEADERS, origin: 'https://evil.example' } } }],
    [
      'an origin that only begins like it',
      { input: { headers: { ...HEADERS, origin: `${ORIGIN}.evil.example` } } },
    ],
    ['no origin', { input: { headers: { ...HEADERS, origin: undefined } } }],
    ['the null origin', { input: { headers: { ...HEADERS, origin: 'null' } } }],
    ['two origins', { input: { headers: { ...HEADERS, origin: [ORIGIN, ORIGIN] } } }],
    ['nobody identified', { signals: { screen: null } }],
  ])('is not given to %s', async (_what, world) => {
    const { status, response } = await run(world);
    expect([status, response.reason]).toEqual([200, 'ok']);
    expect(response.transparencyToken).toBeUndefined();
  });
});

describe('the verdict', () => {
  it('is `unknown` for an incomplete bundle, and identifies nobody below the floor', async () => {
    for (const group of ['screen', 'media', 'graphics'])
      expect((await run({ signals: { [group]: null } })).response.class, group).toBe('unknown');
    const { response, entries, touched } = await run({ plaintext: { signals: {} } });
    expect(response).toMatchObject({
      reason: 'ok',
      class: 'unknown',
      visitorId: null,
      confidence: 0,
      needsAttestation: false,
    });
    expect(entries[0]?.identified).toBeNull();
    expect(touched).toEqual(['botAuth', 'record']);
  });

  it('names a verified agent, and still scores it', async () => {
    const automated = { frame: { webdriver: true } };
    const { response } = await run({ agent: 'https://agent.example', signals: automated });
    expect(response).toMatchObject({
      class: 'declared_agent',
      declaredAgentId: 'https://agent.example',
      smartSignals: { bot: true },
      suspectScore: 0.9,
    });
    expect((await run({ signals: automated })).response).toMatchObject({
      class: 'undeclared_automation',
      declaredAgentId: null,
    });
  });

  it('heeds a reviewer’s override', async () => {
    const { response } = await run({
      known: { neverAutomation: true },
      signals: { frame: { webdriver: true } },
    });
    expect(response).toMatchObject({ class: 'human', suspectScore: 0.2, smartSignals: { bot: false } });
  });

  it('asks for attestation where the id is shared', async () => {
    const spread = { networksToday: 21, pairsOfWeek: 21, tenantPairsOfWeek: 21 };
    expect((await run({ known: { spread } })).response.needsAttestation).toBe(true);
    expect((await run()).response.needsAttestation).toBe(false);
  });

  it('asks for it on a second network of the day, as the setting allows', async () => {
    const knownDevice = { seen: true, spread: { networksToday: 2, pairsOfWeek: 2, tenantPairsOfWeek: 1 } };
    const { response } = await run({ known: knownDevice });
    expect(response).toMatchObject({ needsAttestation: true, confidence: 0.99 });
    const lax = await run({
      known: knownDevice,
      services: { config: { ...SETTINGS, collision_risk: 0.03 } },
    });
    expect(lax.response.needsAttestation).toBe(false);
  });

  it('is made by the tenant’s policy, and once more in shadow, which is only counted', async () => {
    const shadow = tenantPolicySchema.parse({ off: ['A1'] });
    const { response, entries } = await run({ tenant: { shadow }, signals: { frame: { webdriver: true } } });
    expect(response.class).toBe('undeclared_automation');
    expect(entries[0]?.shadow).toEqual({
      policyVersion: applyPolicy(shadow).version,
      class: 'human',
      day: 20_412,
    });
  });

  it('knows the operator’s own monitors', async () => {
    const tenant = { isMonitor: (agent: string | null) => agent === 'https://monitor.example' };
    const signals = { frame: { webdriver: true } };
    const { response, entries } = await run({ tenant, signals, agent: 'https://monitor.example' });
    expect(response).toMatchObject({ class: 'declared_agent', suspectScore: 0.2 });
    expect(entries[0]?.verdict.monitor).toBe(true);
  });
});
