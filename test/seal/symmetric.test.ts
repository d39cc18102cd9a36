import { createDecipheriv, hkdfSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createOpener, createSymmetricOpener } from '../../src/seal/open.ts';
import { sealSymmetric, sealTo } from '../../src/seal/seal.ts';
import { seededRandom } from '../support/make.ts';
import { createPair } from './support.ts';

const random = seededRandom('test/seal/symmetric');
const key = random(32);
const open = createSymmetricOpener(key);
const bundle = sealSymmetric('acme', key, Buffer.from('legacy'), random);

const lp = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => {
      const bytes = Buffer.from(part as string);
      return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]);
    }),
  );

describe('the symmetric form', () => {
  it('has no epk and opens', () => {
    expect(Object.keys(bundle).sort()).toEqual(['ct', 'iv', 'kid']);
    expect(open(bundle)?.toString()).toBe('legacy');
  });

  it('is what the contract writes down, computed again by other means', () => {
    const alg = 'HKDF-SHA256+AES-256-GCM';
    const iv = Buffer.from(bundle.iv, 'base64');
    const sealed = Buffer.from(bundle.ct, 'base64');
    const info = lp('key', 'gpd-seal/1', alg, 'acme', '', '');
    const derived = Buffer.from(hkdfSync('sha256', key, 'gpd-seal/1', info, 32));
    const decipher = createDecipheriv('aes-256-gcm', derived, iv);
    decipher.setAAD(lp('aad', 'gpd-seal/1', alg, 'acme', '', '', iv));
    decipher.setAuthTag(sealed.subarray(-16));
    expect(decipher.update(sealed.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8')).toBe(
      'legacy',
    );
  });

  it('opens nothing by another key, under another kid or with a field of another bundle', () => {
    const other = sealSymmetric('other', key, Buffer.from('legacy'), random);
    expect(createSymmetricOpener(random(32))(bundle)).toBeNull();
    for (const field of ['kid', 'iv', 'ct'] as const)
      expect(open({ ...bundle, [field]: other[field] }), field).toBeNull();
  });

  it('opens nothing with a bit changed or a shorter tag', () => {
    const sealed = Buffer.from(bundle.ct, 'base64');
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const flipped = Buffer.from(sealed);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      expect(open({ ...bundle, ct: flipped.toString('base64') }), `bit ${bit}`).toBeNull();
    }
    for (let length = 0; length < sealed.length; length += 1)
      expect(open({ ...bundle, ct: sealed.subarray(0, length).toString('base64') }), `${length}`).toBeNull();
  });

  it('is not mixed up with the asymmetric one, whose keys are not its keys', () => {
    const pair = createPair(key);
    const asymmetric = sealTo('acme', pair.publicKey, Buffer.from('x'), random);
    expect(open(asymmetric)).toBeNull();
    expect(open({ kid: asymmetric.kid, iv: asymmetric.iv, ct: asymmetric.ct })).toBeNull();
    expect(open({ ...bundle, epk: asymmetric.epk })).toBeNull();
    expect(createOpener(key)({ ...bundle, epk: asymmetric.epk })).toBeNull();
  });
});
