import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readClaimant } from '../../src/auth/tokens.ts';
import { browserPrincipalId } from '../../src/consent/plan-write.ts';
import { plaintextSchema } from '../../src/schema/bundle.ts';
import { eraseTargetSchema } from '../../src/schema/rights.ts';
import { principalRef } from '../../src/tenants/tenant.ts';

const key = Buffer.alloc(32, 7);

it('a principal is stored as the HMAC of its id under the key of the tenant', () => {
  const expected = createHmac('sha256', key).update('Zoë 🐢').digest('base64url');
  expect(principalRef(key, 'Zoë 🐢')).toBe(expected);
});

describe('a principalId is in NFC, whichever way it comes in', () => {
  const [nfc, nfd] = ['Zo\u00eb', 'Zoe\u0308'];
  const bundle = {
    v: 1,
    nonce: 'A'.repeat(22),
    clientTs: 1,
    consent: { purposes: [], gpc: false, version: 1, issuedAt: 1, principalId: nfd },
    signals: {},
  };
  const rules = {
    issuer: 'i',
    audience: 'a',
    oidc_role_claim: 'role',
    oidc_tenant_claim: 'tenant',
    oidc_visitor_claim: 'visitor',
    oidc_principal_claim: 'sub',
  };

  it.each<readonly [string, unknown]>([
    ['an erasure, an export, the console', eraseTargetSchema.parse({ principalId: nfd }).principalId],
    ['a sealed bundle', plaintextSchema.parse(bundle).consent.principalId],
    ['a claim', readClaimant({ sub: nfd, role: 'subject' }, rules).principal],
  ])('%s', (_way, read) => {
    expect(read).toBe(nfc);
  });

  it('but a sub is left as the provider spells it', () => {
    expect(readClaimant({ sub: nfd, role: 'subject' }, rules).sub).toBe(nfd);
  });
});

it('the id of a browser is b_ and the SHA-256 of its 32 bytes, not of their text', () => {
  const secret = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex');
  const id = browserPrincipalId(secret.toString('base64url'));
  expect(id).toBe('b_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0');
});
