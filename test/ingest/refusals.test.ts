import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/lib/crypto.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { createSymmetricOpener } from '../../src/seal/open.ts';
import { sealSymmetric } from '../../src/seal/seal.ts';
import { createReceipt, makePlaintext, NOW, seededRandom } from '../support/make.ts';
import { createRawSignals } from '../support/make-signals.ts';
import { fc } from '../support/property.ts';
import { HEADERS, run, type World } from './support.ts';

const refusedAs = (reason: string, status: number) => ({
  status,
  response: { reason, class: 'unknown', visitorId: null, confidence: 0 },
});

describe('a refusal', () => {
  it.each<[string, World, string, number]>([
    [
      'that did not open',
      { bundle: { kid: 'acme', iv: 'AAAA', ct: 'AAAA', epk: 'AAAA' } },
      'decrypt-failed',
      400,
    ],
    ['of a plaintext that is none', { plaintext: { v: 2 } }, 'decrypt-failed', 400],
    [
      'of a symmetric form nobody has a key for',
      { bundle: { kid: 'acme', iv: 'AAAA', ct: 'AAAA' } },
      'unknown-key',
      401,
    ],
    ['of the past', { plaintext: { clientTs: NOW - 300_001 } }, 'stale', 400],
    ['of 1970', { plaintext: { clientTs: 0 } }, 'stale', 400],
    ['of the end of time', { plaintext: { clientTs: 8_640_000_000_000_000 } }, 'stale', 400],
    ['of the future', { plaintext: { clientTs: NOW + 300_001 } }, 'stale', 400],
    ['without consent', { plaintext: { consent: createReceipt({ purposes: [] }) } }, 'consent-missing', 451],
    ['under Sec-GPC', { input: { headers: { ...HEADERS, 'sec-gpc': '1' } } }, 'consent-missing', 451],
    [
      'under GPC in the receipt',
      { plaintext: { consent: createReceipt({ gpc: true }) } },
      'consent-missing',
      451,
    ],
    ['under GPC in the signals', { signals: { page: { gpc: true } } }, 'consent-missing', 451],
    ['of a tenant that wants proof', { tenant: { needsProof: true } }, 'consent-missing', 451],
  ])('%s touches nothing and writes nothing', async (_what, world, reason, status) => {
    const { touched, ...answer } = await run(world);
    expect(answer).toMatchObject(refusedAs(reason, status));
    expect(answer.response.transparencyToken).toBeUndefined();
    expect(touched).toEqual([]);
  });

  it('of a proof that the ledger does not hold writes nothing', async () => {
    const consent = createReceipt({ principalId: 'u-1', proof: { seq: 41, hash: 'a'.repeat(64) } });
    const { touched, ...answer } = await run({ tenant: { needsProof: true }, plaintext: { consent } });
    expect(answer).toMatchObject(refusedAs('consent-missing', 451));
    expect(answer.response.consentState.basis).toBe('asserted');
    expect(touched).toEqual(['prove acme u-1 device-identification 41']);
  });

  it.each([{ principalId: 'u-1' }, { proof: { seq: 41, hash: 'a'.repeat(64) } }])(
    'of a tenant that wants proof, with %j alone, does not even ask the ledger',
    async (over) => {
      const consent = createReceipt(over);
      const { touched, response } = await run({
        tenant: { needsProof: true },
        proven: ['device-identification'],
        plaintext: { consent },
      });
      expect([response.reason, touched]).toEqual(['consent-missing', []]);
    },
  );

  it('comes in the order of the contract: open, freshness, consent', async () => {
    const staleFields = { clientTs: 0 };
    const unwanted = { consent: createReceipt({ purposes: [] }) };
    expect((await run({ plaintext: { ...staleFields, ...unwanted, v: 2 } })).response.reason).toBe(
      'decrypt-failed',
    );
    expect((await run({ plaintext: { ...staleFields, ...unwanted } })).response.reason).toBe('stale');
    expect((await run({ plaintext: unwanted, outcome: 'replay' })).response.reason).toBe('consent-missing');
  });

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

  it('of the store is handed on, so that the caller may try again', async () => {
    await expect(run({ outcome: new Unavailable('full') })).rejects.toBeInstanceOf(Unavailable);
  });

  it('honours GPC in the signals even where their group is badly typed', async () => {
    const { response, touched } = await run({ signals: { page: { gpc: true, userAgent: 7 } } });
    expect([response.reason, touched]).toEqual(['consent-missing', []]);
  });
});

describe('badly typed signals (contract 3.4)', () => {
  it.each<[string, object]>([
    ['a number for text', { page: { userAgent: 7 } }],
    ['text for a group', { graphics: 'none' }],
    ['10,000 languages', { page: { languages: Array(10_000).fill('x') } }],
    ['fonts that are no bits', { fonts: 'comic sans' }],
  ])('%s: unknown, never a 500', async (_what, signals) => {
    const { status, response } = await run({ signals });
    expect([status, response.reason, response.class]).toEqual([200, 'ok', 'unknown']);
  });

  it.each([
    ['engine', 'errorMessage'],
    ['engine', 'math'],
    ['graphics', 'canvasHash'],
    ['graphics', 'renderer'],
    ['media', 'colorGamut'],
  ])('a lone surrogate in %s.%s: never a 500', async (group, field) => {
    const { status } = await run({
      signals: { [group]: { ...createRawSignals()[group], [field]: 'a\ud800b' } },
    });
    expect(status).toBe(200);
  });

  it('never reject, whatever JSON is in a group', async () => {
    const groups = Object.keys(createRawSignals());
    const value = fc.jsonValue({ maxDepth: 2 });
    const text = fc.string({ unit: 'binary' });
    const object = fc.dictionary(
      fc.constantFrom('userAgent', 'gpc', 'width', 'renderer', 'brands', 'math'),
      fc.oneof(value, text),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...groups), fc.oneof(value, object), async (group, content) => {
        const { status } = await run({ signals: { [group]: content } });
        expect([200, 451]).toContain(status);
      }),
      { numRuns: 60 },
    );
  });
});
