import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { makePlaintext, sealBundle, sealWith } from '../../src/agent/seal.ts';
import { plaintextSchema, sealedBundleSchema } from '../../src/schema/bundle.ts';
import { createOpener } from '../../src/seal/open.ts';
import { fc } from '../support/property.ts';

const vector = JSON.parse(
  readFileSync(new URL('../vectors/gpd-seal-1.json', import.meta.url), 'utf8'),
) as Record<string, string> & { bundle: Record<string, string> };

const hex = (name: string): Buffer => Buffer.from(vector[name]!, 'hex');
const recipient = { kid: vector['kid']!, publicKey: hex('recipient_public_hex').toString('base64') };
const open = createOpener(hex('recipient_private_d_hex'));

async function vectorEphemeral(): Promise<CryptoKeyPair> {
  const point = hex('epk_hex');
  const x = point.subarray(1, 33).toString('base64url');
  const y = point.subarray(33).toString('base64url');
  const d = hex('ephemeral_private_d_hex').toString('base64url');
  const curve = { name: 'ECDH', namedCurve: 'P-256' };
  const jwk = { kty: 'EC', crv: 'P-256', x, y };
  const [publicKey, privateKey] = await Promise.all([
    crypto.subtle.importKey('jwk', jwk, curve, true, []),
    crypto.subtle.importKey('jwk', { ...jwk, d }, curve, false, ['deriveBits']),
  ]);
  return { publicKey, privateKey };
}

describe('gpd-seal/1 by WebCrypto', () => {
  it('gives the known answer', async () => {
    const plaintext = new TextEncoder().encode(vector['plaintext_utf8']);
    const randomness = { ephemeral: await vectorEphemeral(), iv: new Uint8Array(hex('iv_hex')) };
    expect(await sealWith(recipient, plaintext, randomness)).toEqual(vector.bundle);
  });

  it('opens on the server, whatever the bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3000 }), async (bytes) => {
        const bundle = await sealBundle(recipient, new Uint8Array(bytes));
        expect(sealedBundleSchema.parse(bundle)).toEqual(bundle);
        expect(open(bundle)).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 50 },
    );
  });

  it('never uses an ephemeral key or an IV twice', async () => {
    const bundles = await Promise.all(
      Array.from({ length: 20 }, () => sealBundle(recipient, new Uint8Array(8))),
    );
    expect(new Set(bundles.map(({ epk }) => epk)).size).toBe(20);
    expect(new Set(bundles.map(({ iv }) => iv)).size).toBe(20);
  });

  it('rejects a recipient that is no point of P-256', async () => {
    const offCurve = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 7)]).toString('base64');
    for (const publicKey of ['', 'AAAA', '!', offCurve])
      await expect(sealBundle({ kid: 'k', publicKey }, new Uint8Array(1))).rejects.toThrow();
  });
});

const CONSENT = { purposes: ['device-identification'], gpc: false, version: 3, issuedAt: 1_763_629_990_000 };

const read = (bytes: Uint8Array): Record<string, unknown> => JSON.parse(Buffer.from(bytes).toString('utf8'));

describe('makePlaintext', () => {
  it('makes what the server reads', () => {
    const before = Date.now();
    const body = plaintextSchema.parse(read(makePlaintext(CONSENT, { collector: '1', page: null })));
    expect(body).toMatchObject({ v: 1, consent: CONSENT, signals: { collector: '1', page: null } });
    expect(body.clientTs).toBeGreaterThanOrEqual(before);
    expect(Buffer.from(body.nonce, 'base64url')).toHaveLength(16);
  });

  it('has a new nonce every time', () => {
    const nonces = Array.from({ length: 50 }, () => read(makePlaintext(CONSENT, {}))['nonce']);
    expect(new Set(nonces).size).toBe(50);
  });

  it('carries proof and principal when there are any, and nothing else of the receipt', () => {
    const proof = { seq: 41, hash: 'ab'.repeat(32) };
    const known = { ...CONSENT, proof, principalId: 'u-1' };
    const rich = { ...known, proof: { ...proof, secret: 'x' }, principalSecret: 'never' };
    expect(read(makePlaintext(rich, {}))['consent']).toEqual(known);
    expect(Object.keys(read(makePlaintext(CONSENT, {}))['consent'] as object)).toEqual(Object.keys(CONSENT));
  });
});
