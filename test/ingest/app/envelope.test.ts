import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { KID } from '../../support/constants.ts';
import { expectCore, expectError, INGEST, post } from '../../support/expect.ts';
import { ask, lastReply, openWire } from '../../support/http.ts';
import { browserHeaders } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { type SealTarget, startGpd } from '../../support/server.ts';
import { started } from '../../support/started.ts';

const gpd = started(() => startGpd());
let acme: SealTarget;
beforeAll(async () => {
  acme = gpd.targets[0]!;
});

type Bundle = ReturnType<typeof createBundle>;

/** JSON text of a bundle whose fields are texts already. */
function jsonText(fields: readonly (readonly [name: string, value: string])[]): string {
  return `{${fields.map(([name, value]) => `${name}:${value}`).join(',')}}`;
}

function quoted(bundle: Bundle): [string, string][] {
  return Object.entries(bundle).map(([name, value]) => [JSON.stringify(name), JSON.stringify(value)]);
}

/** The last character before the padding, with the bits that decode to nothing set. */
function looseBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const at = text.replace(/=+$/, '').length - 1;
  return text.slice(0, at) + alphabet[alphabet.indexOf(text[at] ?? '') | 1] + text.slice(at + 1);
}

const DEEP = 10_000;
const malformed: readonly (readonly [string, (bundle: Bundle) => unknown])[] = [
  ['an empty body', () => ''],
  ['an array', (bundle) => [bundle]],
  ['null', () => 'null'],
  ['an empty object', () => '{}'],
  ['half an object', (bundle) => JSON.stringify(bundle).slice(0, -1)],
  ['something after the object', (bundle) => `${JSON.stringify(bundle)}{}`],
  ['a byte order mark', (bundle) => `\ufeff${JSON.stringify(bundle)}`],
  ['UTF-16', (bundle) => Buffer.from(JSON.stringify(bundle), 'utf16le')],
  ['bad UTF-8 in a value', (bundle) => Buffer.from(JSON.stringify({ ...bundle, kid: 'a\u00ffb' }), 'latin1')],
  ['an overlong UTF-8 form', () => Buffer.from([0x7b, 0xc0, 0xa2, 0x7d])],
  ['an extra field', (bundle) => ({ ...bundle, extra: 1 })],
  ['__proto__', (bundle) => jsonText([...quoted(bundle), ['"__proto__"', '{}']])],
  [
    '__proto__ that brings the kid',
    ({ kid, ...rest }) => jsonText([...quoted(rest as Bundle), ['"__proto__"', `{"kid":"${kid}"}`]]),
  ],
  ['a duplicate kid', (bundle) => jsonText([...quoted(bundle), ['"kid"', JSON.stringify(KID)]])],
  [
    'a duplicate key spelt with an escape',
    (bundle) => jsonText([...quoted(bundle), ['"\\u006bid"', JSON.stringify(KID)]]),
  ],
  [
    'a duplicate key after a nested object',
    (bundle) => jsonText([['"kid"', '{"a":[1,2]}'], ...quoted(bundle)]),
  ],
  [`arrays ${DEEP} deep`, () => '['.repeat(DEEP) + ']'.repeat(DEEP)],
  [`a kid ${DEEP} deep`, () => `{"kid":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}`],
  [`objects ${DEEP / 2} deep`, () => `${'{"a":'.repeat(DEEP / 2)}1${'}'.repeat(DEEP / 2)}`],
  ['an epk that is null', (bundle) => ({ ...bundle, epk: null })],
  ['an empty epk', (bundle) => ({ ...bundle, epk: '' })],
  ['no kid', ({ kid: _kid, ...rest }) => rest],
  ['an empty kid', (bundle) => ({ ...bundle, kid: '' })],
  ['a kid of 65 characters', (bundle) => ({ ...bundle, kid: 'k'.repeat(65) })],
  ['a kid with |', (bundle) => ({ ...bundle, kid: `${KID}|x` })],
  ['a kid with a line break', (bundle) => ({ ...bundle, kid: `${KID}\n` })],
  ['an iv of 13 bytes', (bundle) => ({ ...bundle, iv: Buffer.alloc(13).toString('base64') })],
  ['an iv in the url alphabet', (bundle) => ({ ...bundle, iv: `${bundle.iv.slice(0, 14)}-_` })],
  ['an epk without padding', (bundle) => ({ ...bundle, epk: bundle.epk.replace('=', '') })],
  ['an epk with loose bits', (bundle) => ({ ...bundle, epk: looseBits(bundle.epk) })],
  ['a kid that a path takes for a step', (bundle) => ({ ...bundle, kid: '..' })],
  ['an empty ct', (bundle) => ({ ...bundle, ct: '' })],
  ['a ct with loose bits', (bundle) => ({ ...bundle, ct: looseBits(Buffer.alloc(40).toString('base64')) })],
  [
    'a ct with a line break',
    (bundle) => ({ ...bundle, ct: `${bundle.ct.slice(0, 76)}\n${bundle.ct.slice(76)}` }),
  ],
];

describe('a body that is no SealedBundle', () => {
  it.each(malformed)('400 malformed-sealed-bundle: %s', async (_name, make) => {
    const body = make(createBundle(acme));
    expectError(await post(gpd.url, body), 'malformed-sealed-bundle');
  });
});

describe('a body that is one, however it is written', () => {
  it('white space, order of fields and escapes do not matter', async () => {
    const { kid, iv, ct, epk } = createBundle(acme);
    const text = `\r\n{ "ct" : "${ct}",\t"\\u0065pk":"${epk}", "iv":"${iv}" , "kid":"\\u0061${kid.slice(1)}"}\n `;
    expectCore(await post(gpd.url, text), 'ok');
  });

  it('a kid may have 64 characters of each allowed kind', async () => {
    const kid = `aZ09._-${'x'.repeat(57)}`;
    expectCore(await post(gpd.url, { ...createBundle(acme), kid }), 'decrypt-failed');
  });
});

describe('the media type', () => {
  it.each(['application/json; charset=utf-8', 'Application/JSON;charset="utf-8"', 'application/json ;x=y'])(
    'takes %s',
    async (type) => {
      expectCore(await post(gpd.url, createBundle(acme), { 'content-type': type }), 'ok');
    },
  );

  it.each(['text/plain; a=application/json', 'application/x-www-form-urlencoded', 'application/jsonx', ''])(
    '415 for %j',
    async (type) => {
      expectError(
        await post(gpd.url, createBundle(acme), { 'content-type': type }),
        'unsupported-media-type',
      );
    },
  );

  it('415 for a body whose transfer is coded, which Node passes over', async () => {
    const send = async (coding: string) => {
      const body = JSON.stringify(createBundle(acme));
      const head = `POST ${INGEST} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: ${coding}`;
      const wire = await openWire(gpd.port);
      wire.send(`${head}\r\nConnection: close\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
      return lastReply((await wire.closed).text).status;
    };
    expect(await send('gzip, chunked')).toBe(415);
    expect(await send('chunked')).toBe(200);
  });

  it.each(['gzip', 'br', 'gzip, identity'])('415 for a body in %s', async (encoding) => {
    const body = gzipSync(JSON.stringify(createBundle(acme)));
    expectError(await post(gpd.url, body, { 'content-encoding': encoding }), 'unsupported-media-type');
  });

  it('takes Content-Encoding: identity, and ignores the query of an address', async () => {
    const body = JSON.stringify(createBundle(acme));
    const json = { 'content-type': 'application/json', 'content-encoding': 'identity' };
    const headers = { ...browserHeaders(), ...json };
    const reply = await ask(gpd.url, `${INGEST}?kid=other`, { method: 'POST', headers, body });
    expect(expectCore(reply, 'ok').class).toBe('human');
  });
});
