import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Claimant } from '../../src/auth/tokens.ts';
import { createAuthenticator, type OidcSettings } from '../../src/rights/oidc.ts';
import { AUDIENCE, type Idp, startIdp } from '../support/oidc.ts';
import { answerTo, oidcSettings, REASONS } from './support.ts';

/** Checks of the claims in tokens with a valid signature of the provider. */

const NOW = 1_800_000_000;
let idp: Idp;
let base: Record<string, unknown>;
beforeAll(async () => {
  idp = await startIdp();
  base = { ...idp.claims(), iat: NOW, exp: NOW + 300 };
});
afterAll(() => idp.stop());

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
  expect(answer).toMatchObject({ status: 401, code: 'unauthenticated' });
  expect(answer.details).toHaveLength(1);
  expect(answer.details[0]).toMatch(reason);
}

it('the control is taken', async () => {
  expect(await callerOf({})).toMatchObject({ sub: 'user-1', roles: new Set(['subject']) });
});

describe('iss', () => {
  it.each([
    ['with a slash', () => `${idp.issuer}/`],
    ['in capitals', () => idp.issuer.toUpperCase()],
    ['by another name of the host', () => idp.issuer.replace('127.0.0.1', 'localhost')],
    ['a prefix', () => idp.issuer.slice(0, -1)],
    ['with more behind it', () => `${idp.issuer}.evil.example`],
    ['by https', () => idp.issuer.replace('http:', 'https:')],
    ['another one', () => 'https://id.evil.example'],
    ['empty', () => ''],
  ])('%s', async (_name, iss) => expectRefused({ iss: iss() }, REASONS.issuer));

  it('of another type', async () => {
    for (const iss of [undefined, null, 5, [idp.issuer], { iss: idp.issuer }])
      await expectRefused({ iss }, REASONS.misshapen);
  });
});

describe('aud', () => {
  it.each([[[AUDIENCE]], [['https://other.example', AUDIENCE]], [[AUDIENCE, AUDIENCE]]])(
    '%j',
    async (aud) => {
      expect((await callerOf({ aud })).sub).toBe('user-1');
    },
  );

  it.each([
    ['https://other.example'],
    [`${AUDIENCE}/`],
    [AUDIENCE.slice(0, -1)],
    [AUDIENCE.toUpperCase()],
    [`${AUDIENCE} https://other.example`],
    [''],
    [[]],
    [['https://other.example']],
  ])('not %j', async (aud) => expectRefused({ aud }, REASONS.audience));

  it.each([[undefined], [null], [5], [{ [AUDIENCE]: true }], [[AUDIENCE, 5]], [[[AUDIENCE]]]])(
    'of another type: %j',
    async (aud) => expectRefused({ aud }, REASONS.misshapen),
  );
});

describe('exp, nbf and iat', () => {
  it.each([
    ['exp', NOW - 29],
    ['exp', NOW - 29.9],
    ['exp', NOW + 0.5],
    ['nbf', NOW + 29],
    ['nbf', 0],
    ['iat', NOW + 29],
    ['iat', NOW - 86_400],
    ['nbf', undefined],
    ['iat', undefined],
  ])('%s may be %s, now being 1800000000', async (name, value) => {
    expect((await callerOf({ [name]: value })).sub).toBe('user-1');
  });

  it.each([
    ['exp', NOW - 30, REASONS.expired],
    ['exp', NOW - 31, REASONS.expired],
    ['exp', 0, REASONS.expired],
    ['exp', 1, REASONS.expired],
    ['nbf', NOW + 31, REASONS.early],
    ['nbf', NOW * 1000, REASONS.early],
    ['iat', NOW + 31, REASONS.early],
    ['iat', NOW * 1000, REASONS.early],
  ])('%s may not be %s', async (name, value, reason) => expectRefused({ [name]: value }, reason));

  it.each([
    ['exp', undefined],
    ['exp', null],
    ['exp', String(NOW + 300)],
    ['exp', -1],
    ['exp', [NOW + 300]],
    ['exp', true],
    ['exp', {}],
    ['nbf', null],
    ['nbf', String(NOW)],
    ['nbf', -1],
    ['iat', null],
    ['iat', new Date(NOW * 1000).toISOString()],
    ['iat', []],
  ])('%s of another type: %j', async (name, value) => expectRefused({ [name]: value }, REASONS.misshapen));

  it('exp larger than any number', async () => {
    const { exp: _, ...rest } = base;
    await expectRefused(`${JSON.stringify(rest).slice(0, -1)},"exp":1e999}`, REASONS.misshapen);
  });
});

describe('sub', () => {
  it.each([
    [undefined],
    [null],
    [''],
    [0],
    [1234],
    [true],
    [['user-1']],
    [{ id: 'user-1' }],
    ['x'.repeat(513)],
    ['user\u0000-1'],
    ['user\n1'],
    ['\ud800'],
  ])('may not be %j', async (sub) => expectRefused({ sub }, REASONS.sub));

  it.each(['a', 'auth0|5f7c8ec7c33c6c004bbafe82', 'Zoë 王', 'x'.repeat(512)])('may be %s', async (sub) => {
    expect(await callerOf({ sub })).toMatchObject({ sub, principal: sub });
  });
});

describe('the roles', () => {
  it.each([
    ['subject', ['subject']],
    ['reviewer', ['reviewer']],
    ['dpo', ['dpo']],
    [['dpo'], ['dpo']],
    [
      ['reviewer', 'dpo'],
      ['reviewer', 'dpo'],
    ],
    [
      ['dpo', 'dpo', 'subject'],
      ['subject', 'dpo'],
    ],
    [['offline_access', 'reviewer', 'admin'], ['reviewer']],
    [['reviewer', 5, null, {}], ['reviewer']],
  ])('%j are a set', async (gpd_role, roles) => {
    expect((await callerOf({ gpd_role })).roles).toEqual(new Set(roles));
  });

  it.each([
    [undefined],
    [null],
    [''],
    ['admin'],
    ['Subject'],
    ['DPO'],
    [' dpo'],
    ['subject reviewer'],
    ['subject,dpo'],
    [[]],
    [['admin']],
    [[['dpo']]],
    [{ dpo: true }],
    [{ 0: 'dpo', length: 1 }],
    [true],
    [2],
  ])('%j are none: 401', async (gpd_role) => expectRefused({ gpd_role }, REASONS.roles));
});

describe('tenant, visitor and principal', () => {
  const claims = [
    ['gpd_tenant', 'tenant'],
    ['gpd_visitor', 'visitor'],
  ] as const;

  it.each(claims)('%s is told as it is', async (claim, name) => {
    expect(await callerOf({ [claim]: 'acme' })).toMatchObject({ [name]: 'acme' });
  });

  it.each(claims)('%s names nothing when it is absent, null or empty', async (claim, name) => {
    for (const value of [undefined, null, ''])
      expect(await callerOf({ [claim]: value })).toMatchObject({ [name]: null });
  });

  // Ignoring the claim would drop a restriction that the provider intended.
  it.each(claims)('%s of another type: 401, and which claim', async (claim) => {
    for (const value of [5, 0, true, false, ['acme'], [], {}, 'a\u0000b', '\udfff', 'x'.repeat(513)])
      await expectRefused({ [claim]: value }, new RegExp(`^The claim ${claim} must be a string`));
  });

  it('the principal may be another claim than sub', async () => {
    const settings = { oidc_principal_claim: 'customer_no' };
    expect(await callerOf({ customer_no: 'c-7' }, settings)).toMatchObject({
      sub: 'user-1',
      principal: 'c-7',
    });
    expect(await callerOf({}, settings)).toMatchObject({ sub: 'user-1', principal: null });
    await expectRefused({ customer_no: 7 }, /^The claim customer_no must be a string/, settings);
  });
});

describe('names of claims', () => {
  const roles = async (name: string, claims: Changes): Promise<unknown> => [
    ...(await callerOf({ gpd_role: undefined, ...claims }, { oidc_role_claim: name })).roles,
  ];

  it('are taken as they are, with dots and colons', async () => {
    expect(await roles('https://gpd.example/role', { 'https://gpd.example/role': 'dpo' })).toEqual(['dpo']);
    expect(await roles('realm_access.roles', { 'realm_access.roles': ['dpo'] })).toEqual(['dpo']);
  });

  it('are JSON pointers when they begin with a slash', async () => {
    expect(await roles('/realm_access/roles', { realm_access: { roles: ['x', 'dpo'] } })).toEqual(['dpo']);
    expect(await roles('/resource/a~1b/~0', { resource: { 'a/b': { '~': 'reviewer' } } })).toEqual([
      'reviewer',
    ]);
    expect(await roles('/list/0', { list: ['subject', 'dpo'] })).toEqual(['subject']);
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

describe('a token that is bound to a key', () => {
  it.each([[{ jkt: 'x' }], [{ 'x5t#S256': 'x' }], [null]])('is no bearer token: cnf %j', async (cnf) =>
    expectRefused({ cnf }, REASONS.bound),
  );
});
