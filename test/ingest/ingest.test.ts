import { describe, expect, it } from 'vitest';
import { applyPolicy } from '../../src/ingest/verdict/classify.ts';
import { sha256 } from '../../src/lib/crypto.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { tenantPolicySchema } from '../../src/schema/policy.ts';
import { createSymmetricOpener } from '../../src/seal/open.ts';
import { sealSymmetric } from '../../src/seal/seal.ts';
import { ORIGIN } from '../support/constants.ts';
import { createReceipt, makePlaintext, NOW, seededRandom } from '../support/make.ts';
import { createRawSignals } from '../support/make-signals.ts';
import { HEADERS, run, SETTINGS, type World } from './support.ts';

/** HTTP does not show which ports a bundle's way asks, and what is handed to the recorder. */

describe('a good bundle', () => {
  it('is identified, classified, recorded and answered', async () => {
    const { status, response, touched, entries } = await run();
    expect(status).toBe(200);
    expect(response).toMatchObject({ reason: 'ok', class: 'human', confidence: 0.6, requestId: 'req_1' });
    expect(response.transparencyToken).toBe(`token acme req_1 session-1 ${ORIGIN}`);
    expect(touched).toEqual(['botAuth', 'lookup', 'record']);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({
      kid: 'acme',
      claim: { kid: 'acme', datedAt: NOW },
      identified: { visitorId: response.visitorId, epoch: 680, network: 'network-hash', day: 20_412 },
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
    ];
    for (const value of [...values, 'session-1', makePlaintext().nonce])
      expect(storedText).not.toContain(value);
  });

  it('is claimed by a hash of its nonce, and salted anew', async () => {
    const [one, two] = [(await run()).entries[0], (await run()).entries[0]];
    expect(one?.claim.nonce).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(one?.claim.nonce).toBe(two?.claim.nonce);
    expect(one?.salt).not.toBe(two?.salt);
    expect(Buffer.from(one?.salt ?? '', 'base64url')).toHaveLength(16);
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

describe('the verdict', () => {
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

  it('asks for it on a second network of the day, as the setting allows', async () => {
    const knownDevice = { seen: true, spread: { networksToday: 2, pairsOfWeek: 2, tenantPairsOfWeek: 1 } };
    const { response } = await run({ known: knownDevice });
    expect(response).toMatchObject({ needsAttestation: true, confidence: 0.99 });
    const config = { ...SETTINGS, collision_risk: 0.03 };
    expect((await run({ known: knownDevice, services: { config } })).response.needsAttestation).toBe(false);
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

const refusedAs = (reason: string, status: number) => ({
  status,
  response: { reason, class: 'unknown', visitorId: null, confidence: 0 },
});
const PROOF = { seq: 41, hash: 'a'.repeat(64) };

describe('a refusal', () => {
  it.each<[string, World, string, number]>([
    ['of a plaintext that is none', { plaintext: { v: 2 } }, 'decrypt-failed', 400],
    ['of the past', { plaintext: { clientTs: NOW - 300_001 } }, 'stale', 400],
    ['of the future', { plaintext: { clientTs: NOW + 300_001 } }, 'stale', 400],
    ['without consent', { plaintext: { consent: createReceipt({ purposes: [] }) } }, 'consent-missing', 451],
    ['under Sec-GPC', { input: { headers: { ...HEADERS, 'sec-gpc': '1' } } }, 'consent-missing', 451],
    [
      'under GPC in the receipt',
      { plaintext: { consent: createReceipt({ gpc: true }) } },
      'consent-missing',
      451,
    ],
    ['under GPC in the signals', { signals: { page: { gpc: true, userAgent: 7 } } }, 'consent-missing', 451],
    ['of a tenant that wants proof', { tenant: { needsProof: true } }, 'consent-missing', 451],
  ])('%s touches nothing and writes nothing', async (_what, world, reason, status) => {
    const { touched, ...answer } = await run(world);
    expect(answer).toMatchObject(refusedAs(reason, status));
    expect(touched).toEqual([]);
  });

  it('of a proof that the ledger does not hold writes nothing', async () => {
    const consent = createReceipt({ principalId: 'u-1', proof: PROOF });
    const { touched, ...answer } = await run({ tenant: { needsProof: true }, plaintext: { consent } });
    expect(answer).toMatchObject(refusedAs('consent-missing', 451));
    expect(answer.response.consentState.basis).toBe('asserted');
    expect(touched).toEqual(['prove acme u-1 device-identification 41']);
  });

  it.each([{ principalId: 'u-1' }, { proof: PROOF }])(
    'of a tenant that wants proof, with %j alone, does not even ask the ledger',
    async (over) => {
      const plaintext = { consent: createReceipt(over) };
      const world = { tenant: { needsProof: true }, proven: ['device-identification'], plaintext };
      const { touched, response } = await run(world);
      expect([response.reason, touched]).toEqual(['consent-missing', []]);
    },
  );

  it('of a tenant that was removed before the write is that of an unknown tenant', async () => {
    expect(await run({ outcome: 'gone' })).toMatchObject(refusedAs('decrypt-failed', 400));
    const shared = sha256('shared');
    const text = Buffer.from(JSON.stringify({ ...makePlaintext(), signals: createRawSignals() }));
    const bundle = sealSymmetric('acme', shared, text, seededRandom('gone'));
    const tenant = { symmetricOpener: createSymmetricOpener(shared) };
    expect(await run({ bundle, tenant })).toMatchObject({ status: 200 });
    const answer = await run({ bundle, tenant, outcome: 'gone' });
    expect(answer).toMatchObject(refusedAs('unknown-key', 401));
    // The refusal reveals nothing of the bundle, as if no consent had ever been given.
    expect(answer.response.consentState.purposes).toEqual([]);
  });

  it('as a replay tells nothing of the device, and gives no token', async () => {
    const answer = await run({ outcome: 'replay', known: { seen: true } });
    expect(answer).toMatchObject(refusedAs('replay', 409));
    expect(answer.response.transparencyToken).toBeUndefined();
    expect(answer.response.consentState.purposes).toEqual(['device-identification']);
  });
});
