import { describe, expect, it } from 'vitest';
import { readEnvelope } from '../../src/ingest/open.ts';
import { fc } from '../support/property.ts';

const bytes = (size: number): string => Buffer.alloc(size, 7).toString('base64');
const bundle = { kid: 'acme', iv: bytes(12), ct: bytes(40), epk: bytes(65) };
const text = JSON.stringify(bundle);

describe('readEnvelope', () => {
  it('reads a bundle of either form, with white space around it', () => {
    expect(readEnvelope(Buffer.from(text))).toEqual(bundle);
    expect(readEnvelope(Buffer.from(` \n${JSON.stringify(bundle, null, 2)}\r\n`))).toEqual(bundle);
    const { epk: _, ...symmetric } = bundle;
    expect(readEnvelope(Buffer.from(JSON.stringify(symmetric)))).toEqual(symmetric);
  });

  it.each<[string, string | Buffer]>([
    ['nothing', ''],
    ['no JSON', 'kid=acme'],
    ['a list', `[${text}]`],
    ['null', 'null'],
    ['half of it', text.slice(0, -1)],
    ['two of it', text + text],
    ['a duplicate key', text.replace('{', '{"kid":"other",')],
    ['a duplicate key in disguise', text.replace('{', '{"\\u006bid":"other",')],
    ['an extra field', text.replace('{', '{"extra":1,')],
    ['__proto__', text.replace('{', '{"__proto__":{},')],
    ['a byte order mark', `\ufeff${text}`],
    [
      'bad UTF-8',
      Buffer.concat([Buffer.from('{"kid":"'), Buffer.of(0xc3, 0x28), Buffer.from(text.slice(12))]),
    ],
    ['UTF-16', Buffer.from(text, 'utf16le')],
    ['an iv with non-zero trailing bits', JSON.stringify({ ...bundle, iv: `${bytes(11).slice(0, -2)}B=` })],
    ['a ct in the url alphabet', JSON.stringify({ ...bundle, ct: 'AA-_AAAA' })],
    ['a ct with a line end', JSON.stringify({ ...bundle, ct: 'AAAA\nAAA' })],
    ['a ct with a space', JSON.stringify({ ...bundle, ct: 'AAAA AAA' })],
    ['an iv of 11 bytes', JSON.stringify({ ...bundle, iv: bytes(11) })],
    ['an epk of 66 bytes', JSON.stringify({ ...bundle, epk: bytes(66) })],
    ['an epk of 64 bytes', JSON.stringify({ ...bundle, epk: bytes(64) })],
    ['a ct without padding', JSON.stringify({ ...bundle, ct: 'AAAAA' })],
    ['a ct with non-zero trailing bits', JSON.stringify({ ...bundle, ct: 'AAAB==' })],
    [
      'an epk with non-zero trailing bits',
      JSON.stringify({ ...bundle, epk: `${bundle.epk.slice(0, -2)}d=` }),
    ],
  ])('finds no bundle in %s', (_what, body) => {
    expect(readEnvelope(Buffer.from(body as string))).toBeNull();
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (body) => {
        expect(readEnvelope(body)).toBeNull();
      }),
    );
  });
});
