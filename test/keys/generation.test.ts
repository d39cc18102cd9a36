import { createECDH } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createGeneration, destroyGeneration, wrapContext } from '../../src/keys/generation.ts';
import { createMasterKey } from '../../src/keys/master-key.ts';
import { NOW, seededRandom } from '../support/make.ts';

const masterKey = createMasterKey(Buffer.alloc(32, 1), seededRandom('test/keys/generation'));
const deps = { masterKey, now: NOW };

describe('createGeneration', () => {
  it('makes a pair whose private half is wrapped for its own row', () => {
    const key = createGeneration('acme', 3, 'published', deps);
    const scalar = masterKey.unwrap(key.wrappedPrivate ?? '', wrapContext('acme', 3));
    const ecdh = createECDH('prime256v1');
    ecdh.setPrivateKey(scalar);
    expect(scalar).toHaveLength(32);
    expect(key.publicKey).toBe(ecdh.getPublicKey('base64'));
    expect(key.publicKey).toHaveLength(88);
    expect(Buffer.from(key.publicKey, 'base64')[0]).toBe(4);
    for (const [kid, generation] of [
      ['acme', 4],
      ['other', 3],
    ] as const)
      expect(() => masterKey.unwrap(key.wrappedPrivate ?? '', wrapContext(kid, generation))).toThrow();
  });

  it('tells when it was published, if it was', () => {
    const times = { createdAt: NOW, retiresAt: null, destroyedAt: null };
    expect(createGeneration('acme', 1, 'published', deps)).toMatchObject({ ...times, publishedAt: NOW });
    expect(createGeneration('acme', 2, 'staged', deps)).toMatchObject({
      ...times,
      state: 'staged',
      publishedAt: null,
    });
  });

  it('makes every pair anew', () => {
    const keys = Array.from({ length: 20 }, () => createGeneration('acme', 1, 'staged', deps).publicKey);
    expect(new Set(keys).size).toBe(20);
  });

  it('holds no private key outside the wrapping', () => {
    const key = createGeneration('acme', 1, 'published', deps);
    const scalar = masterKey.unwrap(key.wrappedPrivate ?? '', wrapContext('acme', 1));
    for (const encoding of ['base64', 'hex', 'base64url'] as const)
      expect(JSON.stringify(key)).not.toContain(scalar.toString(encoding));
  });
});

describe('destroyGeneration', () => {
  it('keeps what was public and its dates, and no private key', () => {
    const key = createGeneration('acme', 1, 'published', deps);
    expect(destroyGeneration(key, NOW + 5)).toEqual({
      ...key,
      state: 'destroyed',
      wrappedPrivate: null,
      retiresAt: null,
      destroyedAt: NOW + 5,
    });
  });
});
