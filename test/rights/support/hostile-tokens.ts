import { createKey, encodePart, macJws, publicJwk, signJws } from '../../support/jws.ts';
import type { Idp } from '../../support/oidc.ts';

/**
 * Creates one token per attack, for tests of routes that need a
 * token: each must answer 401. test/auth explains each attack.
 */
export async function createHostileTokens(
  idp: Idp,
): Promise<readonly (readonly [name: string, token: string])[]> {
  const now = Math.floor(Date.now() / 1000);
  const attacker = await createKey('ES256');
  const { ES256, RS256 } = idp.keys;
  const claims = idp.claims({ gpd_role: ['subject', 'reviewer', 'dpo'], gpd_tenant: 'acme' });
  const good = idp.forge(claims);
  const [header = '', payload = '', signature = ''] = good.split('.');
  const sign = (changes: object): string => idp.forge({ ...claims, ...changes });
  const withHeader = (members: Readonly<Record<string, unknown>>): string => idp.forge(claims, members);
  return [
    ['alg none', `${encodePart({ alg: 'none' })}.${payload}.`],
    ['alg NoNe with a signature', `${encodePart({ alg: 'NoNe' })}.${payload}.${signature}`],
    ['HS256 under the public key', macJws({ alg: 'HS256', kid: RS256.kid }, claims, RS256.n ?? '')],
    ['RS256 by kid of the P-256 key', idp.forge(claims, { kid: ES256.kid }, 'RS256')],
    ['ES384', withHeader({ alg: 'ES384' })],
    ['an own key', signJws({ alg: 'ES256', kid: ES256.kid }, claims, attacker)],
    ['an own key in jwk', signJws({ alg: 'ES256', jwk: publicJwk(attacker) }, claims, attacker)],
    ['jku', signJws({ alg: 'ES256', jku: 'http://127.0.0.1:9/' }, claims, attacker)],
    ['x5u', withHeader({ x5u: 'http://127.0.0.1:9/' })],
    ['x5c', withHeader({ x5c: ['AAAA'] })],
    ['crit', withHeader({ crit: ['exp'] })],
    ['b64 false', withHeader({ b64: false, crit: ['b64'] })],
    ['a kid that is a path', withHeader({ kid: '../../../../../dev/null' })],
    ['a kid that is SQL', withHeader({ kid: "' OR 1=1 --" })],
    ['a kid that is a number', withHeader({ kid: 1 })],
    ['a huge kid', withHeader({ kid: 'k'.repeat(4000) })],
    ['typ of a logout token', withHeader({ typ: 'logout+jwt' })],
    ['no exp', sign({ exp: undefined })],
    ['expired', sign({ exp: now - 60 })],
    ['not yet valid', sign({ nbf: now + 3600 })],
    ['another issuer', sign({ iss: 'https://id.evil.example' })],
    ['another audience', sign({ aud: 'https://other.example' })],
    ['sub a number', sign({ sub: 1 })],
    ['sub a list', sign({ sub: ['user-1'] })],
    ['no sub', sign({ sub: undefined })],
    ['no role', sign({ gpd_role: undefined })],
    ['an unknown role', sign({ gpd_role: 'admin' })],
    ['a tenant that is a list', sign({ gpd_tenant: ['acme', 'globex'] })],
    ['a tenant with a NUL', sign({ gpd_tenant: 'acme\u0000' })],
    ['bound to a key', sign({ cnf: { jkt: 'x' } })],
    ['padded', `${header}.${payload}.${signature}==`],
    ['cut off', good.slice(0, -4)],
    ['without a signature', `${header}.${payload}.`],
    ['five parts', `${good}.AAAA.AAAA`],
    ['a payload that is no JSON', idp.forge('not JSON')],
    ['a payload that is a list', idp.forge('[]')],
    ['eight kilobytes and more', sign({ pad: 'x'.repeat(7000) })],
  ];
}
