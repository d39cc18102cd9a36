import { CompactEncrypt, importJWK } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_TOKEN_LENGTH } from '../../src/auth/tokens.ts';
import { type Authenticate, makeAuthenticator } from '../../src/rights/oidc.ts';
import { encodePart, publicJwk } from '../support/jws.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { answerTo, oidcSettings, WHY } from './support.ts';

/** A good token in another spelling, and what only looks like one. */

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
let idp: Idp;
let authenticate: Authenticate;
let good: string;
let parts: readonly string[];
beforeAll(async () => {
  idp = await startIdp();
  authenticate = makeAuthenticator(oidcSettings(idp), Date.now, () => {});
  good = await idp.token({ gpd_role: 'subject' });
  parts = good.split('.');
  expect((await answerTo(authenticate, `Bearer ${good}`)).status).toBe(200);
});
afterAll(() => idp.stop());

async function refused(token: string, why: RegExp = WHY.malformed): Promise<void> {
  const answer = await answerTo(authenticate, `Bearer ${token}`);
  expect(answer).toMatchObject({ status: 401, code: 'unauthenticated' });
  expect(answer.details).toHaveLength(1);
  expect(answer.details[0]).toMatch(why);
}
const withPart = (index: number, text: string): string =>
  parts.map((part, i) => (i === index ? text : part)).join('.');

describe.each([
  ['header', 0],
  ['payload', 1],
  ['signature', 2],
])('the %s', (_name, index) => {
  const part = (): string => parts[index] ?? '';

  it.each([
    ['padding', () => `${part()}${'='.repeat((4 - (part().length % 4)) % 4 || 4)}`],
    ['one padding sign', () => `${part()}=`],
    ['an encoded padding sign', () => `${part()}%3D`],
    ['the other alphabet', () => `${part().slice(0, -1)}+`],
    ['a slash', () => `${part().slice(0, -1)}/`],
    ['a sign too many', () => `${part()}A`.replace(/^(.{4})*.$/, '$&').concat('*')],
    ['a NUL as text', () => `${part()}\\0`],
    ['nothing at all', () => ''],
  ])('with %s', async (_what, spell) => refused(withPart(index, spell())));

  // Spaces between the scheme and the token are the header's.
  it('with white space, before, between and behind', async () => {
    for (const space of [' ', '\t', '\u00a0', '\u200b', '\ufeff']) {
      const spelt = [
        `${space}${part()}`,
        `${part()}${space}`,
        `${part().slice(0, 4)}${space}${part().slice(4)}`,
      ];
      for (const text of index === 0 && space === ' ' ? spelt.slice(1) : spelt)
        await refused(withPart(index, text), /compact serialization|one Authorization header/);
    }
  });

  it('with bits left over', async () => {
    const { length } = part();
    if (length % 4 === 0) return;
    const last = ALPHABET.indexOf(part().at(-1) ?? '');
    const spare = length % 4 === 2 ? 16 : 4;
    expect(last % spare).toBe(0);
    for (let bits = 1; bits < spare; bits += 1) {
      const other = `${part().slice(0, -1)}${ALPHABET[last + bits]}`;
      expect(Buffer.from(other, 'base64url')).toEqual(Buffer.from(part(), 'base64url'));
      await refused(withPart(index, other));
    }
  });
});

it('at least one part of a token has bits to spare, so that the case above is one', () => {
  expect(parts.some((part) => part.length % 4 !== 0)).toBe(true);
});

describe('the serialization', () => {
  it.each([
    ['no dot', () => parts.join('')],
    ['one dot', () => `${parts[0]}.${parts[1]}`],
    ['three dots', () => `${good}.`],
    ['a dot before', () => `.${good}`],
    ['four parts', () => `${good}.AAAA`],
    ['five parts', () => `${good}.AAAA.AAAA`],
    ['dots alone', () => '..'],
    ['a thousand dots', () => '.'.repeat(1000)],
    ['flattened JSON', () => JSON.stringify({ protected: parts[0], payload: parts[1], signature: parts[2] })],
    [
      'general JSON',
      () => JSON.stringify({ payload: parts[1], signatures: [{ protected: parts[0], signature: parts[2] }] }),
    ],
    ['detached', () => `${parts[0]}..${parts[2]}`],
    ['the token as base64', () => encodePart(good)],
    ['the token in quotes', () => `"${good}"`],
    ['letters beyond ASCII', () => `${good}é`],
  ])('%s', async (_name, token) => refused(token()));

  it('a JWE to a key of the provider', async () => {
    const key = await importJWK({ ...publicJwk(idp.keys.RS256), alg: 'RSA-OAEP-256' });
    const jwe = await new CompactEncrypt(Buffer.from(JSON.stringify(idp.claims())))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A128GCM', kid: idp.keys.RS256.kid ?? '' })
      .encrypt(key);
    await refused(jwe);
  });

  it('a signed token within a signed token', async () => {
    await refused(idp.forge(good, { cty: 'JWT' }));
  });
});

describe('the JSON', () => {
  it.each([
    ['an array', '[]'],
    ['a string', '"x"'],
    ['a number', '5'],
    ['null', 'null'],
    ['nothing', ' '],
    ['half of it', '{"iss":'],
    ['more behind it', '{} {}'],
    ['a comment', '{/**/}'],
    ['NaN', '{"exp":NaN}'],
    ['nested too deeply', `{"x":${'['.repeat(500)}${']'.repeat(500)}}`],
    ['a byte order mark', '\ufeff{}'],
    ['not UTF-8', Buffer.from('7b2278223a22ff227d', 'hex')],
    ['an overlong slash', Buffer.from('7b2278223a22c0af227d', 'hex')],
  ])('%s in the payload', async (_name, payload) => refused(idp.forge(payload)));

  it.each([
    ['iss', '"iss":"https://id.evil.example",'],
    ['a role', '"gpd_role":"dpo",'],
    ['a role that is spelt with an escape', '"gpd\\u005frole":"dpo",'],
  ])('%s twice in the payload', async (_name, first) => {
    await refused(idp.forge(`{${first}${JSON.stringify(idp.claims()).slice(1)}`));
  });

  it('alg twice in the header', async () => {
    const header = encodePart(`{"alg":"none","alg":"ES256","kid":"${idp.keys.ES256.kid}"}`);
    await refused(`${header}.${parts[1]}.${parts[2]}`);
  });

  it('members of an object that are no members', async () => {
    const claims = `{"__proto__":{"gpd_role":"dpo"},${JSON.stringify(idp.claims({ gpd_role: 'none' })).slice(1)}`;
    await refused(idp.forge(claims), WHY.roles);
  });
});

describe('the signature', () => {
  const ORDER = 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551';
  const half = (fill: string): string => fill.repeat(32);
  it.each([
    ['of zeros (CVE-2022-21449)', half('00') + half('00')],
    ['with r zero', `${half('00')}${half('01')}`],
    ['with s zero', `${half('01')}${half('00')}`],
    ['with the order twice', ORDER + ORDER],
    ['of ones', half('ff') + half('ff')],
    ['of one byte', '00'],
    ['as DER', `3006020101020101`],
    ['of a P-384 size', '01'.repeat(96)],
  ])('%s', async (_name, hex) => {
    await refused(withPart(2, Buffer.from(hex, 'hex').toString('base64url')), WHY.signature);
  });

  it('of another token', async () => {
    const other = await idp.token({ gpd_role: 'dpo' });
    await refused(withPart(2, other.split('.')[2] ?? ''), WHY.signature);
    await refused(withPart(1, other.split('.')[1] ?? ''), WHY.signature);
  });

  it('cut off by a byte, or with one more', async () => {
    const bytes = Buffer.from(parts[2] ?? '', 'base64url');
    await refused(withPart(2, bytes.subarray(0, -1).toString('base64url')), WHY.signature);
    await refused(withPart(2, Buffer.concat([bytes, Buffer.alloc(1)]).toString('base64url')), WHY.signature);
  });
});

describe('the size', () => {
  const sized = (length: number): string => {
    const padded = (pad: number): string => idp.forge(idp.claims({ pad: 'x'.repeat(pad) }));
    const pad = Math.floor(((length - padded(0).length) * 3) / 4);
    const found = [pad - 1, pad, pad + 1].map(padded).find((token) => token.length === length);
    if (found === undefined) throw new Error(`no token of ${length} characters`);
    return found;
  };

  it('may be 8 KB and not more', async () => {
    expect((await answerTo(authenticate, `Bearer ${sized(MAX_TOKEN_LENGTH)}`)).status).toBe(200);
    await refused(sized(MAX_TOKEN_LENGTH + 2));
  });

  it.each([9000, 16_384, 1_000_000])('%d characters', async (length) => {
    await refused(idp.forge(idp.claims({ pad: 'x'.repeat(length) })));
    await refused('A'.repeat(length));
    await refused(`${'A'.repeat(length)}.${parts[1]}.${parts[2]}`);
  });
});

it('no single character of a token can be changed, dropped or doubled', async () => {
  let tried = 0;
  for (let i = 0; i < good.length; i += 1) {
    const at = ALPHABET.indexOf(good[i] ?? '');
    const changed = ALPHABET[(at + 1 + (i % 62)) % 64] ?? 'A';
    for (const insert of [changed, '', `${good[i]}${good[i]}`]) {
      const answer = await answerTo(authenticate, `Bearer ${good.slice(0, i)}${insert}${good.slice(i + 1)}`);
      expect(answer.status, `character ${i} became ${insert}`).toBe(401);
      tried += 1;
    }
  }
  expect(tried).toBeGreaterThan(1000);
});
