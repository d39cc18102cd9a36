import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { commitVerdict } from '../../src/ledger/entries.ts';
import { fc } from '../support/property.ts';

const SALT = Buffer.alloc(16, 5);

describe('commitVerdict', () => {
  it('is HMAC-SHA-256 under the salt over four parts with 4-byte lengths', () => {
    const lp4 = (text: string): string =>
      Buffer.byteLength(text).toString(16).padStart(8, '0') + Buffer.from(text).toString('hex');
    const input = ['gpd/verdict/v1', 'acme', 'req_1', '{"class":"human","ü":1}'].map(lp4).join('');
    const expected = createHmac('sha256', SALT).update(Buffer.from(input, 'hex')).digest('base64url');
    expect(commitVerdict(SALT, 'acme', 'req_1', '{"class":"human","ü":1}')).toBe(expected);
    expect(expected).toHaveLength(43);
  });

  it('is another one when anything is another', () => {
    const commitments = [
      commitVerdict(SALT, 'acme', 'req_1', '{}'),
      commitVerdict(Buffer.alloc(16, 6), 'acme', 'req_1', '{}'),
      commitVerdict(SALT, 'acme2', 'req_1', '{}'),
      commitVerdict(SALT, 'acme', 'req_2', '{}'),
      commitVerdict(SALT, 'acme', 'req_1', '{ }'),
    ];
    expect(new Set(commitments).size).toBe(commitments.length);
  });

  it('knows where one part ends and the next begins', () => {
    const part = fc.string({ unit: fc.constantFrom('a', 'b', '\u0000'), maxLength: 4 });
    fc.assert(
      fc.property(fc.tuple(part, part, part), fc.tuple(part, part, part), (a, b) => {
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        expect(commitVerdict(SALT, ...a) === commitVerdict(SALT, ...b)).toBe(isSame);
      }),
    );
  });
});
