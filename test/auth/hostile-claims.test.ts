import { beforeAll, describe, expect, it } from 'vitest';
import type { Claimant } from '../../src/auth/tokens.ts';
import {
  createAuthenticator,
  missingOidcSettings,
  type OidcSettings,
} from '../../src/rights/oidc-service.ts';
import { AUDIENCE, startIdp } from '../support/oidc.ts';
import { started } from '../support/started.ts';
import { answerTo, oidcSettings, REASONS } from './support.ts';

/** Checks of the claims in tokens with a valid signature of the provider. */

const NOW = 1_800_000_000;
const idp = started(() => startIdp());
let base: Record<string, unknown>;
beforeAll(async () => {
  base = { ...idp.claims(), iat: NOW, exp: NOW + 300 };
});

type Changes = Readonly<Record<string, unknown>>;
const authenticator = (settings: Partial<OidcSettings> = {}) =>
  createAuthenticator(
    oidcSettings(idp, settings),
    () => NOW * 1000,
    () => {},
  );
const callerOf = (changes: Changes, settings?: Partial<OidcSettings>): Promise<Claimant> =>
  authenticator(settings)(`Bearer ${idp.forge({ ...base, ...changes })}`);

async function expectRefused(
  changes: Changes | string,
  reason: RegExp,
  settings?: Partial<OidcSettings>,
): Promise<void> {
  const claims = typeof changes === 'string' ? changes : { ...base, ...changes };
  const answer = await answerTo(authenticator(settings), `Bearer ${idp.forge(claims)}`);
  expect(answer, JSON.stringify(changes)).toMatchObject({ status: 401, code: 'unauthenticated' });
  expect(answer.details, JSON.stringify(changes)).toEqual([expect.stringMatching(reason)]);
}

async function expectAllRefused(name: string, values: readonly unknown[], reason: RegExp): Promise<void> {
  for (const value of values) await expectRefused({ [name]: value }, reason);
}

it('the control is taken, and says who it is', async () => {
  expect(await callerOf({ sub: 'anna', gpd_tenant: 'acme' })).toEqual({
    issuer: idp.issuer,
    sub: 'anna',
    roles: new Set(['subject']),
    tenant: 'acme',
    visitor: null,
    principal: 'anna',
  });
});

it.each([
  [{}, ['GPD_OIDC_ISSUER', 'GPD_OIDC_AUDIENCE']],
  [{ oidc_issuer: 'http://127.0.0.1:1' }, ['GPD_OIDC_AUDIENCE']],
  [{ oidc_audience: AUDIENCE }, ['GPD_OIDC_ISSUER']],
])('with %j for a configuration: 401, and what to set', async (changes, missingNames) => {
  const unset = { oidc_issuer: null, oidc_audience: null, ...changes };
  const answer = await answerTo(authenticator(unset), `Bearer ${idp.forge(base)}`);
  expect(answer).toMatchObject({ status: 401, code: 'unauthenticated', challenge: 'Bearer' });
  expect(answer.details).toEqual(missingNames.map((name) => expect.stringContaining(name) as string));
  expect(answer.details).toEqual(missingOidcSettings(oidcSettings(idp, unset)));
});

describe('iss', () => {
  it.each([
    ['with a slash', () => `${idp.issuer}/`],
    ['in capitals', () => idp.issuer.toUpperCase()],
    ['by another name of the host', () => idp.issuer.replace('127.0.0.1', 'localhost')],
    ['a prefix', () => idp.issuer.slice(0, -1)],
    ['with more behind it', () => `${idp.issuer}.evil.example`],
    ['by https', () => idp.issuer.replace('http:', 'https:')],
    ['empty', () => ''],
  ])('%s', async (_name, iss) => expectRefused({ iss: iss() }, REASONS.issuer));

  it('of another type', () =>
    expectAllRefused('iss', [undefined, null, 5, [idp.issuer], { iss: idp.issuer }], REASONS.misshapen));
});

describe('aud', () => {
  it('may be a list with ours', async () => {
    for (const aud of [[AUDIENCE], ['https://other.example', AUDIENCE]])
      expect((await callerOf({ aud })).sub).toBe('user-1');
  });

  it('may be nothing else', async () => {
    const other = 'https://other.example';
    const texts = [
      other,
      `${AUDIENCE}/`,
      AUDIENCE.slice(0, -1),
      AUDIENCE.toUpperCase(),
      `${AUDIENCE} ${other}`,
    ];
    await expectAllRefused('aud', [...texts, '', [], [other]], REASONS.audience);
    const misshapen = [undefined, null, 5, { [AUDIENCE]: true }, [AUDIENCE, 5], [[AUDIENCE]]];
    await expectAllRefused('aud', misshapen, REASONS.misshapen);
  });
});

describe('exp, nbf and iat', () => {
  it.each([
    ['exp', NOW - 29.9],
    ['exp', NOW + 0.5],
    ['nbf', NOW + 29],
    ['nbf', undefined],
    ['iat', NOW + 29],
    ['iat', NOW - 86_400],
    ['iat', undefined],
  ])('%s may be %s, now being 1800000000', async (name, value) => {
    expect((await callerOf({ [name]: value })).sub).toBe('user-1');
  });

  it.each([
    ['exp', NOW - 30, REASONS.expired],
    ['exp', 0, REASONS.expired],
    ['nbf', NOW + 31, REASONS.early],
    ['nbf', NOW * 1000, REASONS.early],
    ['iat', NOW + 31, REASONS.early],
  ])('%s may not be %s', async (name, value, reason) => expectRefused({ [name]: value }, reason));

  it('of another type, or larger than any number', async () => {
    const exps = [undefined, null, String(NOW + 300), -1, [NOW + 300], true, {}];
    await expectAllRefused('exp', exps, REASONS.misshapen);
    await expectAllRefused('nbf', [null, String(NOW), -1], REASONS.misshapen);
    await expectAllRefused('iat', [null, new Date(NOW * 1000).toISOString(), []], REASONS.misshapen);
    const { exp: _, ...rest } = base;
    await expectRefused(`${JSON.stringify(rest).slice(0, -1)},"exp":1e999}`, REASONS.misshapen);
  });
});

describe('sub', () => {
  it('may not be nothing, a number, too long or a text with control characters', async () => {
    const otherTypes = [undefined, null, '', 0, 1234, true, ['user-1'], { id: 'user-1' }];
    const texts = ['x'.repeat(513), 'user\u0000-1', 'user\n1', '\ud800'];
    await expectAllRefused('sub', [...otherTypes, ...texts], REASONS.sub);
  });

  it.each(['a', 'auth0|5f7c8ec7c33c6c004bbafe82', 'Zoë 王', 'x'.repeat(512)])('may be %s', async (sub) => {
    expect(await callerOf({ sub })).toMatchObject({ sub, principal: sub });
  });
});

describe('the roles', () => {
  it.each([
    ['reviewer', 'reviewer'],
    [['dpo'], 'dpo'],
    [['reviewer', 'dpo'], 'reviewer dpo'],
    [['dpo', 'dpo', 'subject'], 'subject dpo'],
    [['offline_access', 'reviewer', 'admin'], 'reviewer'],
    [['reviewer', 5, null, {}], 'reviewer'],
  ])('%j are the set %s', async (gpd_role, roles) => {
    expect((await callerOf({ gpd_role })).roles).toEqual(new Set(roles.split(' ')));
  });

  it('are none of these: 401', async () => {
    const texts = ['', 'admin', 'Subject', 'DPO', ' dpo', 'subject reviewer', 'subject,dpo'];
    const otherTypes = [
      undefined,
      null,
      [],
      ['admin'],
      [['dpo']],
      { dpo: true },
      { 0: 'dpo', length: 1 },
      true,
      2,
    ];
    await expectAllRefused('gpd_role', [...texts, ...otherTypes], REASONS.roles);
  });
});

describe('tenant, visitor and principal', () => {
  it.each([
    ['gpd_tenant', 'tenant'],
    ['gpd_visitor', 'visitor'],
  ])(
    '%s is told as it is, names nothing when it is empty, and is 401 when it is no text',
    async (claim, name) => {
      expect(await callerOf({ [claim]: 'acme' })).toMatchObject({ [name]: 'acme' });
      for (const value of [undefined, null, ''])
        expect(await callerOf({ [claim]: value })).toMatchObject({ [name]: null });
      // Ignoring the claim would drop a restriction that the provider intended.
      const invalid = [5, 0, true, false, ['acme'], [], {}, 'a\u0000b', '\udfff', 'x'.repeat(513)];
      await expectAllRefused(claim, invalid, new RegExp(`^The claim ${claim} must be a string`));
    },
  );

  it('the principal may be another claim than sub', async () => {
    const settings = { oidc_principal_claim: 'customer_no' };
    const sub = 'user-1';
    expect(await callerOf({ customer_no: 'c-7' }, settings)).toMatchObject({ sub, principal: 'c-7' });
    expect(await callerOf({}, settings)).toMatchObject({ sub, principal: null });
    await expectRefused({ customer_no: 7 }, /^The claim customer_no must be a string/, settings);
  });
});

describe('names of claims', () => {
  it.each([
    ['https://gpd.example/role', { 'https://gpd.example/role': 'dpo' }],
    ['realm_access.roles', { 'realm_access.roles': ['dpo'] }],
    ['/realm_access/roles', { realm_access: { roles: ['x', 'dpo'] } }],
    ['/resource/a~1b/~0', { resource: { 'a/b': { '~': 'dpo' } } }],
    ['/list/0', { list: ['dpo', 'subject'] }],
  ])('%s is taken as it is, or as a JSON pointer: %j', async (oidc_role_claim, claims) => {
    const { roles } = await callerOf({ gpd_role: undefined, ...claims }, { oidc_role_claim });
    expect([...roles]).toEqual(['dpo']);
  });

  it.each([
    ['realm_access.roles', { realm_access: { roles: ['dpo'] } }],
    ['/realm_access/roles', { 'realm_access/roles': 'dpo' }],
    ['/realm_access/roles', { realm_access: 'dpo' }],
    ['/realm_access/roles', { realm_access: null }],
    ['/', { gpd_role: 'dpo' }],
    ['__proto__', {}],
    ['/__proto__/constructor/name', {}],
    ['/gpd_tenant/length', { gpd_tenant: 'acme' }],
  ])('%s finds nothing in %j', async (name, claims) =>
    expectRefused({ gpd_role: undefined, ...claims }, REASONS.roles, { oidc_role_claim: name }),
  );
});

it('a token that is bound to a key is no bearer token', () =>
  expectAllRefused('cnf', [{ jkt: 'x' }, { 'x5t#S256': 'x' }, null], REASONS.bound));
