import { createPublicKey, type JsonWebKey } from 'node:crypto';
import type { JWK } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MAX_TOKEN_LENGTH } from '../../src/auth/tokens.ts';
import { type Authenticate, createAuthenticator } from '../../src/rights/oidc-service.ts';
import { createKey, encodePart, macJws, publicJwk, signJws } from '../support/jws.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { fc } from '../support/property.ts';
import { serve } from '../support/serve.ts';
import { started } from '../support/started.ts';
import { answerTo, movableClock, oidcSettings, REASONS } from './support.ts';

/** Headers of requests and of tokens that try to choose the algorithm or the key. Each differs from a valid one only in that. */

let idp: Idp;
let authenticate: Authenticate;
let attacker: JWK;
const clock = movableClock();
const faults: unknown[] = [];
beforeAll(async () => {
  [idp, attacker] = await Promise.all([startIdp(), createKey('ES256')]);
  authenticate = createAuthenticator(oidcSettings(idp), clock, (error) => faults.push(error), clock);
});
afterAll(async () => {
  await idp.stop();
  expect(faults).toEqual([]);
});
// The provider is read at most once a second, so each case starts a second later.
beforeEach(() => clock.advance(1000));

async function expectRefused(token: string, reason: RegExp): Promise<void> {
  const answer = await answerTo(authenticate, `Bearer ${token}`);
  const challenge = 'Bearer error="invalid_token"';
  expect(answer).toMatchObject({ status: 401, code: 'unauthenticated', challenge });
  expect(answer.details).toEqual([expect.stringMatching(reason)]);
  expect(JSON.stringify(answer)).not.toContain(token.slice(0, 20));
}
/** Expects that a token of the provider is refused with each of these values in a member of its header. */
async function expectAllRefused(member: string, values: readonly unknown[], reason: RegExp): Promise<void> {
  for (const value of values) {
    clock.advance(1000);
    await expectRefused(idp.forge(idp.claims(), { [member]: value }), reason);
  }
}
const expectAccepted = async (token: string): Promise<void> => {
  expect(await answerTo(authenticate, `Bearer ${token}`)).toMatchObject({ status: 200 });
};

describe('the control', () => {
  it.each(['ES256', 'RS256'] as const)('a token made by hand with the %s key is taken', async (alg) => {
    await expectAccepted(idp.forge(idp.claims(), {}, alg));
  });

  it('so is one without a kid: each algorithm has one key', async () => {
    await expectAccepted(idp.forge(idp.claims(), { kid: undefined }));
  });
});

describe('the Authorization header', () => {
  it('takes a scheme in any case, and several spaces behind it (RFC 9110 section 11.4)', async () => {
    const token = idp.forge(idp.claims());
    for (const scheme of ['Bearer', 'bEaReR', 'BEARER  '])
      expect((await answerTo(authenticate, `${scheme} ${token}`)).status).toBe(200);
  });

  it.each([
    ['no scheme', (token: string) => token],
    ['Basic', (token: string) => `Basic ${token}`],
    ['DPoP', (token: string) => `DPoP ${token}`],
    ['a colon', (token: string) => `Bearer: ${token}`],
    ['Bearer twice', (token: string) => `Bearer Bearer ${token}`],
    ['a tab', (token: string) => `Bearer\t${token}`],
    ['two tokens', (token: string) => `Bearer ${token} ${token}`],
    ['two tokens and a comma', (token: string) => `Bearer ${token}, Bearer ${token}`],
    ['a parameter', (token: string) => `Bearer token=${token}`],
    ['quotes', (token: string) => `Bearer "${token}"`],
    ['nothing behind it', () => 'Bearer'],
  ])('401 for %s', async (_name, header) => {
    expect((await answerTo(authenticate, header(idp.forge(idp.claims())))).status).toBe(401);
  });

  it('401 without one, and no error code (RFC 6750 section 3)', async () => {
    for (const header of [undefined, ''])
      expect(await answerTo(authenticate, header)).toMatchObject({
        status: 401,
        code: 'unauthenticated',
        challenge: 'Bearer',
      });
  });
});

describe('typ', () => {
  it.each([undefined, 'JWT', 'Jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', 'APPLICATION/JWT'])(
    'may be %s',
    async (typ) => expectAccepted(idp.forge(idp.claims(), { typ })),
  );

  it('may be nothing else', async () => {
    const media = ['dpop+jwt', 'logout+jwt', 'secevent+jwt', 'token-introspection+jwt', 'text/jwt'];
    const spelt = ['application/application/jwt', 'at+jwt; charset=utf-8', ' JWT', ''];
    await expectAllRefused('typ', ['JWS', 'JOSE', ...media, ...spelt], REASONS.header);
    await expectAllRefused('typ', [null, 5, ['JWT'], {}], REASONS.header);
  });
});

describe('alg', () => {
  const unsigned = (alg: unknown): string => `${encodePart({ alg, typ: 'JWT' })}.${encodePart(idp.claims())}`;

  it.each(['none', 'None', 'NONE', 'nOnE', 'none ', ' none'])('%j without a signature', async (alg) => {
    await expectRefused(`${unsigned(alg)}.`, REASONS.malformed);
    await expectRefused(unsigned(alg), REASONS.malformed);
    await expectRefused(`${unsigned(alg)}.AA`, REASONS.algorithm);
    await expectRefused(idp.forge(idp.claims(), { alg }), REASONS.algorithm);
  });

  it.each('ES384 ES512 ES256K EdDSA Ed25519 RS384 RS512 RS1 PS256 HS256 HS512'.split(' '))(
    '%s, signed by a good key',
    async (alg) => {
      await expectRefused(idp.forge(idp.claims(), { alg }), REASONS.algorithm);
      await expectRefused(idp.forge(idp.claims(), { alg }, 'RS256'), REASONS.algorithm);
    },
  );

  it('spelt otherwise, or of another type', async () => {
    const spelt = ['es256', 'Es256', 'ES256 ', 'rs256', 'RS256\u0000', '', '__proto__', 'toString'];
    await expectAllRefused('alg', spelt, REASONS.algorithm);
    await expectAllRefused('alg', [null, 5, ['ES256'], { ES256: 1 }, true, undefined], REASONS.header);
  });

  it('of the other key: RS256 by the kid of the P-256 key, and the other way round', async () => {
    const { ES256, RS256 } = idp.keys;
    for (const [header, alg] of [
      [{ kid: ES256.kid }, 'RS256'],
      [{ kid: RS256.kid }, 'ES256'],
      [{ alg: 'RS256' }, 'ES256'],
      [{ alg: 'ES256' }, 'RS256'],
    ] as const) {
      clock.advance(1000);
      await expectRefused(idp.forge(idp.claims(), header, alg), REASONS.signature);
    }
  });

  it('PS256 by the RSA key, said to be RS256', async () => {
    const key = { ...idp.keys.RS256, alg: 'PS256' };
    const token = signJws({ alg: 'RS256', kid: key.kid }, idp.claims(), key);
    await expectRefused(token, REASONS.signature);
  });
});

describe('a public key taken for a secret', () => {
  const spki = (jwk: JWK) => createPublicKey({ key: publicJwk(jwk) as JsonWebKey, format: 'jwk' });
  const pem = (jwk: JWK) => spki(jwk).export({ format: 'pem', type: 'spki' }).toString();
  const forms: readonly [string, (jwk: JWK) => string | Uint8Array][] = [
    ['PEM', pem],
    ['PEM without its last line break', (jwk) => pem(jwk).trim()],
    ['DER', (jwk) => spki(jwk).export({ format: 'der', type: 'spki' })],
    ['the JWK as text', (jwk) => JSON.stringify(publicJwk(jwk))],
    ['the modulus or the point', (jwk) => Buffer.from(jwk.n ?? `${jwk.x}${jwk.y}`, 'base64url')],
    ['the modulus or the point as text', (jwk) => jwk.n ?? `${jwk.x}${jwk.y}`],
    ['nothing', () => ''],
  ];
  it.each(forms)('%s', async (_name, secretOf) => {
    for (const jwk of [idp.keys.RS256, idp.keys.ES256]) {
      const secret = secretOf(jwk);
      const { kid, alg } = jwk;
      await expectRefused(macJws({ alg: 'HS256', kid }, idp.claims(), secret), REASONS.algorithm);
      await expectRefused(macJws({ alg: 'HS512', kid }, idp.claims(), secret, 'sha512'), REASONS.algorithm);
      await expectRefused(macJws({ alg, kid }, idp.claims(), secret), REASONS.signature);
    }
  });
});

describe('a key that the sender brings', () => {
  let hits = 0;
  const evil = started(() =>
    serve((_request, response) => {
      hits += 1;
      response.end(JSON.stringify({ keys: [publicJwk(attacker)] }));
    }),
  );
  afterEach(() => expect(hits).toBe(0));

  const headers: readonly [string, () => Record<string, unknown>][] = [
    ['jwk', () => ({ jwk: publicJwk(attacker) })],
    ['jwk and the kid', () => ({ jwk: { ...publicJwk(attacker), kid: idp.keys.ES256.kid } })],
    ['jku', () => ({ jku: `${evil.url}/jwks` })],
    ['jku of the provider', () => ({ jku: `${idp.issuer}/jwks` })],
    ['x5u', () => ({ x5u: `${evil.url}/jwks` })],
    ['x5c', () => ({ x5c: [Buffer.from('certificate').toString('base64')] })],
    ['x5c that is empty', () => ({ x5c: [] })],
    ['jwk that is null', () => ({ jwk: null })],
  ];

  it.each(headers)('%s', async (_name, header) => {
    const { kid } = idp.keys.ES256;
    const base = { alg: 'ES256', typ: 'JWT', ...header() };
    await expectRefused(signJws(base, idp.claims(), attacker), REASONS.header);
    await expectRefused(signJws({ ...base, kid }, idp.claims(), attacker), REASONS.header);
    await expectRefused(idp.forge(idp.claims(), header()), REASONS.header);
  });

  it('none, but the kid of the provider', async () => {
    const { kid } = idp.keys.ES256;
    await expectRefused(signJws({ alg: 'ES256', kid }, idp.claims(), attacker), REASONS.signature);
    await expectRefused(signJws({ alg: 'ES256' }, idp.claims(), attacker), REASONS.signature);
  });

  it('thumbprints of certificates name no key and do no harm', async () => {
    await expectAccepted(idp.forge(idp.claims(), { x5t: 'AAAA', 'x5t#S256': 'AAAA' }));
    await expectRefused(signJws({ alg: 'ES256', x5t: 'AAAA' }, idp.claims(), attacker), REASONS.signature);
  });
});

describe('kid', () => {
  it('is a name and nothing else', async () => {
    const paths = ['../../../../../../dev/null', '/dev/null', 'file:///etc/passwd', '|/usr/bin/id'];
    const queries = [
      "x' UNION SELECT 'secret' --",
      '1; DROP TABLE tenants; --',
      `$${'{jndi:ldap://127.0.0.1/a}'}`,
    ];
    const names = ['__proto__', 'constructor', 'toString', '', '0', 'ec-1\u0000', 'EC-1', 'ec-1 ', '\ud800'];
    for (const kid of [...paths, ...queries, ...names, 'k'.repeat(1024)]) {
      // A second look at the keys within a second would wait.
      clock.advance(1000);
      await expectRefused(signJws({ alg: 'ES256', kid }, idp.claims(), attacker), REASONS.signature);
      clock.advance(1000);
      await expectAllRefused('kid', [kid], REASONS.signature);
    }
  });

  it('of another type or endless', () =>
    expectAllRefused('kid', [null, 0, 1, true, ['ec-1'], { kid: 'ec-1' }, 'k'.repeat(1025)], REASONS.header));

  it('makes the provider no work but one look at its keys', async () => {
    await idp.asked();
    await expectRefused(idp.forge(idp.claims(), { kid: '../../x' }), REASONS.signature);
    expect(await idp.asked()).toEqual(['/.well-known/openid-configuration', '/jwks']);
  });
});

describe('extensions', () => {
  it.each([
    [{ crit: ['exp'], exp: 1 }],
    [{ crit: ['b64'], b64: true }],
    [{ crit: ['http://openbankingspec.example/iat'] }],
    [{ crit: [] }],
    [{ crit: null }],
    [{ crit: 'exp' }],
    [{ b64: false }],
    [{ zip: 'DEF' }],
    [{ enc: 'A128GCM' }],
  ])('%j', async (header) => expectRefused(idp.forge(idp.claims(), header), REASONS.header));

  it('b64 false over a payload that is not encoded (RFC 7797)', async () => {
    const header = encodePart({ alg: 'ES256', kid: idp.keys.ES256.kid, b64: false, crit: ['b64'] });
    await expectRefused(`${header}.${JSON.stringify(idp.claims())}.AAAA`, REASONS.malformed);
  });
});

describe('the size', () => {
  const createTokenOfLength = (length: number): string => {
    const padded = (pad: number): string => idp.forge(idp.claims({ pad: 'x'.repeat(pad) }));
    const pad = Math.floor(((length - padded(0).length) * 3) / 4);
    const found = [pad - 1, pad, pad + 1].map(padded).find((token) => token.length === length);
    if (found === undefined) throw new Error(`no token of ${length} characters`);
    return found;
  };

  it('may be 8 KB and not more', async () => {
    await expectAccepted(createTokenOfLength(MAX_TOKEN_LENGTH));
    await expectRefused(createTokenOfLength(MAX_TOKEN_LENGTH + 2), REASONS.malformed);
  });

  it.each([9000, 1_000_000])('%d characters', async (length) => {
    await expectRefused(idp.forge(idp.claims({ pad: 'x'.repeat(length) })), REASONS.malformed);
    await expectRefused('A'.repeat(length), REASONS.malformed);
    const [, payload, signature] = (await idp.token({ gpd_role: 'subject' })).split('.');
    await expectRefused(`${'A'.repeat(length)}.${payload}.${signature}`, REASONS.malformed);
  });
});

/** Random tokens are accepted or get one of the two refusals; answerTo throws any other error. */
describe('random tokens', () => {
  const statusOf = async (authorization: string): Promise<number> =>
    (await answerTo(authenticate, authorization)).status;

  it('any text for a header is 401', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((token) => `Bearer ${token}`),
      fc
        .tuple(fc.base64String(), fc.base64String(), fc.base64String())
        .map((list) => `Bearer ${list.join('.')}`),
      fc
        .tuple(fc.jsonValue(), fc.jsonValue())
        .map((list) =>
          list.map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')).join('.'),
        )
        .map((token) => `Bearer ${token}.AAAA`),
    );
    await fc.assert(
      fc.asyncProperty(text, async (header) => {
        expect(await statusOf(header)).toBe(401);
      }),
      { numRuns: 1000 },
    );
  });

  it('any value for a member, signed by the provider, is 401 unless the rest is as it has to be', async () => {
    const anyValue = fc.oneof(fc.jsonValue(), fc.constant(undefined));
    const requiredMembers = ['iss', 'aud', 'exp', 'sub', 'gpd_role'] as const;
    const claims = fc.dictionary(
      fc.constantFrom(
        ...requiredMembers,
        'nbf',
        'iat',
        'gpd_tenant',
        'gpd_visitor',
        'cnf',
        'jti',
        '__proto__',
      ),
      anyValue,
    );
    const header = fc.dictionary(fc.constantFrom('typ', 'crit', 'b64', 'jwk', 'x5c', 'cty', 'x5t'), anyValue);
    let acceptedCount = 0;
    await fc.assert(
      fc.asyncProperty(claims, header, async (changes, extra) => {
        const all = idp.claims(changes);
        const askedAt = Date.now();
        const status = await statusOf(`Bearer ${idp.forge(all, extra)}`);
        expect([200, 401]).toContain(status);
        if (status === 401) return;
        acceptedCount += 1;
        expect(all['iss']).toBe(idp.issuer);
        expect([all['aud']].flat()).toContain(idp.audience);
        expect(all['exp']).toBeGreaterThan(askedAt / 1000 - 30);
        expect(all['sub']).toMatch(/./);
        expect([all['gpd_role']].flat()).toContain('subject');
        for (const name of ['crit', 'b64', 'jwk', 'x5c']) expect(extra[name]).toBeUndefined();
      }),
      { numRuns: 1000 },
    );
    expect(acceptedCount).toBeGreaterThan(20);
  });
});
