import { describe, expect, it } from 'vitest';
import { decodeBase64, decodeBase64Url } from '../../src/lib/crypto.ts';
import { fc } from '../support/property.ts';

const bytesOf = fc.uint8Array({ maxLength: 100 });

describe('decodeBase64', () => {
  it('decodes what an encoder makes', () => {
    fc.assert(
      fc.property(bytesOf, (bytes) => {
        expect(decodeBase64(Buffer.from(bytes).toString('base64'))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it('takes one spelling of a value only', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ABZabz019+/-_= \n'.split('')) }), (text) => {
        const bytes = decodeBase64(text);
        if (bytes !== null) expect(bytes.toString('base64')).toBe(text);
      }),
    );
  });

  it.each([
    ['missing padding', 'AA'],
    ['too much padding', 'AAAA='],
    ['padding alone', '='],
    ['url alphabet', 'AA-_'],
    ['white space', 'AAAA AAAA'],
    ['a line end', 'AAAA\n'],
    ['non-zero trailing bits', 'AB=='],
    ['non-zero trailing bits', 'AAB='],
    ['a lone character', 'A'],
    ['text after padding', 'AA==AAAA'],
    ['a NUL', 'AAAA\u0000'],
    ['no ASCII', 'ÄÄÄÄ'],
    // Node's decoder takes the low byte of these: U+0141 for A.
    ['no ASCII whose low byte is', 'AAA\u0141'],
    ['no ASCII in a long text', `${'A'.repeat(40)}\uff41${'A'.repeat(43)}`],
  ])('refuses %s', (_what, text) => {
    expect(decodeBase64(text)).toBeNull();
  });

  it('takes nothing for no bytes', () => {
    expect(decodeBase64('')).toEqual(Buffer.alloc(0));
  });
});

describe('decodeBase64Url', () => {
  it('decodes what an encoder makes', () => {
    fc.assert(
      fc.property(bytesOf, (bytes) => {
        expect(decodeBase64Url(Buffer.from(bytes).toString('base64url'))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it.each(['AA==', 'AA+/', 'AB', 'AAB', 'A', 'AA ', 'AA\n', '=', 'AAAA=', 'ÄÄ'])('refuses %j', (text) => {
    expect(decodeBase64Url(text)).toBeNull();
  });
});
