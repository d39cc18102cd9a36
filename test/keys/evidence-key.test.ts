import { createPublicKey, verify } from 'node:crypto';
import { expect, it } from 'vitest';
import { createEvidenceKey, signEs256 } from '../../src/keys/evidence-key.ts';

/** RFC 6979 appendix A.2.5, with SHA-256. */
const KEY = 'C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721';
const VECTORS = [
  [
    'sample',
    'EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716',
    'F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8',
  ],
  [
    'test',
    'F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367',
    '019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083',
  ],
] as const;

it.each(VECTORS)('signs %s as RFC 6979 does', (message, r, s) => {
  const signature = signEs256(Buffer.from(KEY, 'hex'), Buffer.from(message));
  expect(signature.toString('hex').toUpperCase()).toBe(r + s);
});

it('another program verifies each seal, and the same bytes get the same seal', () => {
  for (let i = 0; i < 50; i += 1) {
    const key = createEvidenceKey(Buffer.alloc(32, i));
    const payload = Buffer.from(`part ${i}`);
    const jws = key.sign(payload);
    expect(key.sign(payload)).toBe(jws);
    const [head = '', body = '', signature = ''] = jws.split('.');
    expect(Buffer.from(body, 'base64url').toString()).toBe(`part ${i}`);
    const publicKey = createPublicKey({ key: key.jwk, format: 'jwk' });
    const isValid = verify(
      'sha256',
      Buffer.from(`${head}.${body}`),
      { key: publicKey, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    );
    expect(isValid).toBe(true);
  }
});
