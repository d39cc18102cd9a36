import { createDecipheriv, createECDH, ECDH, hkdfSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { SealedBundle } from '../../src/schema/bundle.ts';
import { createOpener, createSymmetricOpener } from '../../src/seal/open.ts';
import { sealSymmetric, sealTo } from '../../src/seal/seal.ts';
import { announcedSeed, seededRandom } from '../support/make.ts';
import { fc } from '../support/property.ts';
import { readSealVector } from '../support/vectors.ts';
import { createPair, forge } from './support.ts';

const random = seededRandom('test/seal/open');
const pair = createPair(random(32));
const open = createOpener(pair.scalar);
const TEXT = '{"v":1,"hello":"wörld"}';
const bundle = sealTo('acme', pair.publicKey, Buffer.from(TEXT), random);

const key = random(32);
const openSymmetric = createSymmetricOpener(key);
const symmetric = sealSymmetric('acme', key, Buffer.from('legacy'), random);

/** Every bundle that differs from a good one by one bit of one field. */
function* bitFlips(good: SealedBundle): Generator<[string, SealedBundle]> {
  for (const [field, text] of Object.entries(good).filter(([name]) => name !== 'kid')) {
    const bytes = Buffer.from(text ?? '', 'base64');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      yield [`${field}, bit ${bit}`, { ...good, [field]: flipped.toString('base64') }];
    }
  }
}

describe('sealTo and createOpener', () => {
  it('seal and open the known answer', () => {
    const vector = readSealVector();
    const bytes = [vector.ephemeral_private_d_hex, vector.iv_hex].map((text) => Buffer.from(text, 'hex'));
    const recipient = Buffer.from(vector.recipient_public_hex, 'hex');
    const sealed = sealTo(vector.kid, recipient, Buffer.from(vector.plaintext_utf8), () => bytes.shift()!);
    expect(sealed).toEqual(vector.bundle);
    const opener = createOpener(Buffer.from(vector.recipient_private_d_hex, 'hex'));
    expect(opener(vector.bundle)?.toString()).toBe(vector.plaintext_utf8);
  });

  it('go 1,000 times round with random keys, kids and plaintexts', () => {
    const source = seededRandom(announcedSeed('seal round trips'));
    expect(open(sealTo('acme', pair.publicKey, Buffer.alloc(0), random))).toEqual(Buffer.alloc(0));
    for (let i = 0; i < 1000; i += 1) {
      const { scalar, publicKey } = createPair(source(32));
      const plaintext = source(source(2).readUInt16BE() % 3000);
      const kid = source(1 + (i % 32)).toString('hex');
      const opened = createOpener(scalar)(sealTo(kid, publicKey, plaintext, source));
      if (!opened?.equals(plaintext)) expect.fail(`round ${i} did not open`);
    }
  });

  it('never use an ephemeral key or an IV twice', () => {
    const sealed = Array.from({ length: 50 }, () => sealTo('acme', pair.publicKey, Buffer.from('x'), random));
    expect(new Set(sealed.map(({ epk }) => epk)).size).toBe(50);
    expect(new Set(sealed.map(({ iv }) => iv)).size).toBe(50);
  });

  it('refuse to seal to what is no point of P-256', () => {
    for (const recipient of [Buffer.alloc(0), Buffer.alloc(65, 4), pair.publicKey.subarray(0, 64)])
      expect(() => sealTo('acme', recipient, Buffer.from('x'), random)).toThrow();
  });
});

describe('createOpener opens nothing', () => {
  it('that differs by a single bit anywhere, or holds a field of another good bundle', () => {
    const other = sealTo('other', pair.publicKey, Buffer.from(TEXT), random);
    const otherSymmetric = sealSymmetric('other', key, Buffer.from('legacy'), random);
    for (const [opener, good, foreign] of [
      [open, bundle, other],
      [openSymmetric, symmetric, otherSymmetric],
    ] as const) {
      const flips = [...bitFlips(good)];
      expect(flips.length).toBeGreaterThan(250);
      for (const [position, flipped] of flips) expect(opener(flipped), position).toBeNull();
      for (const field of Object.keys(good) as (keyof typeof good)[])
        expect(opener({ ...good, [field]: foreign[field] }), field).toBeNull();
      expect(opener(foreign)).not.toBeNull();
    }
  });

  it('without epk, or that was sealed to another generation or key', () => {
    expect(open({ ...bundle, epk: undefined })).toBeNull();
    expect(createOpener(createPair(random(32)).scalar)(bundle)).toBeNull();
    expect(createSymmetricOpener(random(32))(symmetric)).toBeNull();
  });

  it.each(['Acme', 'acme ', 'acm', 'acme.', ''])('under the kid %j', (kid) => {
    expect(open({ ...bundle, kid })).toBeNull();
  });

  it('in another spelling of its base64', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const { ct, iv, epk = '' } = bundle;
    // The last bits of the last character before the padding say nothing, and are zero in the one spelling.
    const trailing = `${epk.slice(0, -2)}${alphabet[alphabet.indexOf(epk.at(-2) ?? '') + 1]}=`;
    expect(Buffer.from(trailing, 'base64')).toEqual(Buffer.from(epk, 'base64'));
    const spellings: Partial<SealedBundle>[] = [
      { iv: `${iv}\n` },
      { ct: `${ct} ` },
      { ct: `${ct.slice(0, 4)}\n${ct.slice(4)}` },
      { epk: Buffer.from(epk, 'base64').toString('base64url') },
      { epk: trailing },
    ];
    for (const change of spellings) expect(open({ ...bundle, ...change }), JSON.stringify(change)).toBeNull();
  });

  it('with a tag of 0 to 15 bytes', () => {
    const ephemeral = createPair(random(32));
    const shared = ecdhOf(pair.scalar).computeSecret(ephemeral.publicKey);
    const forged = (tagBytes: number, plaintext: string): SealedBundle =>
      forge({ recipient: pair.publicKey, epk: ephemeral.publicKey, shared, tagBytes, plaintext });
    expect(open(forged(16, 'whole'))?.toString()).toBe('whole');
    for (let tagBytes = 0; tagBytes < 16; tagBytes += 1)
      for (const plaintext of ['', 'a plaintext longer than a tag is'])
        expect(open(forged(tagBytes, plaintext)), `${tagBytes} of ${plaintext}`).toBeNull();
  });

  it('with an IV of another length', () => {
    for (const size of [0, 8, 11, 13, 16])
      expect(open({ ...bundle, iv: Buffer.alloc(size, 9).toString('base64') }), `${size}`).toBeNull();
  });

  it('and throws at nothing, whatever the fields hold', () => {
    const known = fc.constantFrom('', bundle.iv, bundle.ct, bundle.epk ?? '');
    const field = fc.oneof(fc.string(), fc.base64String(), known);
    fc.assert(
      fc.property(field, field, field, field, (kid, iv, ct, epk) => {
        expect(open({ kid, iv, ct, epk })).toBeNull();
      }),
    );
  });
});

function ecdhOf(scalar: Buffer): ReturnType<typeof createECDH> {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(scalar);
  return ecdh;
}

describe('an ephemeral key', () => {
  const ephemeral = createPair(random(32));
  const shared = ecdhOf(pair.scalar).computeSecret(ephemeral.publicKey);
  const forged = (epk: Uint8Array): SealedBundle => forge({ recipient: pair.publicKey, epk, shared });
  const encoded = (format: 'compressed' | 'hybrid'): Buffer =>
    ECDH.convertKey(ephemeral.publicKey, 'prime256v1', undefined, undefined, format) as Buffer;

  it('opens when it is uncompressed', () => {
    expect(open(forged(ephemeral.publicKey))?.toString()).toBe('forged');
  });

  it('opens nothing in the hybrid form, which OpenSSL itself would take', () => {
    const hybrid = encoded('hybrid');
    expect([6, 7]).toContain(hybrid[0]);
    expect(ecdhOf(pair.scalar).computeSecret(hybrid)).toEqual(shared);
    expect(open(forged(hybrid))).toBeNull();
    const wrongParity = Buffer.from(hybrid);
    wrongParity[0] = hybrid[0]! ^ 1;
    expect(open(forged(wrongParity))).toBeNull();
  });

  it('opens nothing compressed, which OpenSSL itself would take', () => {
    const compressed = encoded('compressed');
    expect(ecdhOf(pair.scalar).computeSecret(compressed)).toEqual(shared);
    expect(open(forged(compressed))).toBeNull();
    expect(open(forged(Buffer.concat([compressed, Buffer.alloc(32)])))).toBeNull();
  });

  it('opens nothing as the point at infinity, off the curve or beyond the field', () => {
    const point = (x: Buffer, y: Buffer): Buffer => Buffer.concat([Buffer.of(4), x, y]);
    const x = ephemeral.publicKey.subarray(1, 33);
    const y = Buffer.from(ephemeral.publicKey.subarray(33));
    y[31]! ^= 1;
    const p = Buffer.from('ffffffff00000001000000000000000000000000ffffffffffffffffffffffff', 'hex');
    const bad = [
      Buffer.of(0),
      Buffer.alloc(65),
      point(Buffer.alloc(32), Buffer.alloc(32)),
      point(x, y),
      point(x, Buffer.alloc(32)),
      point(p, Buffer.alloc(32)),
      point(Buffer.alloc(32, 255), Buffer.alloc(32, 255)),
      ephemeral.publicKey.subarray(0, 64),
      Buffer.concat([ephemeral.publicKey, Buffer.of(0)]),
      ephemeral.publicKey.subarray(1),
    ];
    for (const epk of bad) expect(open(forged(epk)), epk.toString('hex')).toBeNull();
    // An opener holds no state.
    expect(open(bundle)?.toString()).toBe(TEXT);
  });
});

const lp = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => {
      const bytes = Buffer.from(part as string);
      return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]);
    }),
  );

describe('the symmetric form', () => {
  it('has no epk and opens', () => {
    expect(Object.keys(symmetric).sort()).toEqual(['ct', 'iv', 'kid']);
    expect(openSymmetric(symmetric)?.toString()).toBe('legacy');
  });

  it('is what the contract writes down, computed again by other means', () => {
    const alg = 'HKDF-SHA256+AES-256-GCM';
    const iv = Buffer.from(symmetric.iv, 'base64');
    const sealed = Buffer.from(symmetric.ct, 'base64');
    const info = lp('key', 'gpd-seal/1', alg, 'acme', '', '');
    const derived = Buffer.from(hkdfSync('sha256', key, 'gpd-seal/1', info, 32));
    const decipher = createDecipheriv('aes-256-gcm', derived, iv);
    decipher.setAAD(lp('aad', 'gpd-seal/1', alg, 'acme', '', '', iv));
    decipher.setAuthTag(sealed.subarray(-16));
    expect(decipher.update(sealed.subarray(0, -16), undefined, 'utf8') + decipher.final('utf8')).toBe(
      'legacy',
    );
  });

  it('opens nothing with a shorter tag', () => {
    const sealed = Buffer.from(symmetric.ct, 'base64');
    for (let length = 0; length < sealed.length; length += 1) {
      const ct = sealed.subarray(0, length).toString('base64');
      expect(openSymmetric({ ...symmetric, ct }), `${length}`).toBeNull();
    }
  });

  it('is not mixed up with the asymmetric one, whose keys are not its keys', () => {
    const asymmetric = sealTo('acme', createPair(key).publicKey, Buffer.from('x'), random);
    expect(openSymmetric(asymmetric)).toBeNull();
    expect(openSymmetric({ kid: asymmetric.kid, iv: asymmetric.iv, ct: asymmetric.ct })).toBeNull();
    expect(openSymmetric({ ...symmetric, epk: asymmetric.epk })).toBeNull();
    expect(createOpener(key)({ ...symmetric, epk: asymmetric.epk })).toBeNull();
  });
});
