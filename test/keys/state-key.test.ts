import { createPrivateKey, createPublicKey } from 'node:crypto';
import { expect, it } from 'vitest';
import { deriveStateKey } from '../../src/keys/state-key.ts';

/** Computed with Python's `cryptography` from the bytes 0 to 31: another program derives the same key. */
const VECTOR = {
  kty: 'EC',
  crv: 'P-256',
  x: '97CGnsG2ndHTV6jEYWsWxqLh964xYqi2Q6VlqrYHKYY',
  y: 'o1zAYOp-4AkABntHVb9HXxclVN90i-e3DXvswQEnFKE',
  d: 'XSO55sOq3JYGdmLEDonP2S4mmi_y4N91-4B1GvAptYI',
};

it('the key of signed states is the vector’s', () => {
  expect(deriveStateKey(Buffer.from(Array.from({ length: 32 }, (_, i) => i)))).toEqual(VECTOR);
});

it('each secret has a whole key, with its public point', () => {
  for (let i = 0; i < 300; i += 1) {
    const jwk = deriveStateKey(Buffer.alloc(32, i % 256));
    const publicKey = createPublicKey(createPrivateKey({ key: jwk, format: 'jwk' }));
    const { d: _d, ...point } = jwk;
    expect(publicKey.export({ format: 'jwk' })).toEqual(point);
  }
});
