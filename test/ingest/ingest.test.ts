import { describe, expect, it } from 'vitest';
import { applyPolicy } from '../../src/ingest/verdict/classify.ts';
import { sha256 } from '../../src/lib/crypto.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { tenantPolicySchema } from '../../src/schema/policy.ts';
import { createSymmetricOpener } from '../../src/seal/open.ts';
import { sealSymmetric } from '../../src/seal/seal.ts';
import { createReceipt, makePlaintext, NOW, seededRandom } from '../support/make.ts';
import { createRawSignals } from '../support/make-signals.ts';
import { run } from './support.ts';

/** Facts that HTTP does not show: the ports that a bundle's way asks, the input of the recorder, and a clock that is behind. */

describe('a good bundle', () => {
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

describe('the verdict', () => {
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
});
