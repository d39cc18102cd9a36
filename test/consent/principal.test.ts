import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readClaimant } from '../../src/auth/tokens.ts';
import { browserPrincipalId } from '../../src/consent/plan-write.ts';
import { plaintextSchema } from '../../src/schema/bundle.ts';
import { eraseTargetSchema } from '../../src/schema/rights.ts';
import { principalRef } from '../../src/tenants/tenant.ts';

const key = Buffer.alloc(32, 7);

describe('principalRef', () => {
  it('is the HMAC of the id under the key of the tenant', () => {
    const expected = createHmac('sha256', key).update('Zoë 🐢').digest('base64url');
    expect(principalRef(key, 'Zoë 🐢')).toBe(expected);
  });

  it('differs by tenant and by person, and holds nothing of the id', () => {
    const refs = [
      principalRef(key, 'u-1'),
      principalRef(key, 'u-2'),
      principalRef(key, 'u-1 '),
      principalRef(Buffer.alloc(32, 8), 'u-1'),
    ];
    expect(new Set(refs).size).toBe(refs.length);
    for (const ref of refs) expect(ref).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  it('takes composed and decomposed letters for one person (ADR 0030)', () => {
    expect(principalRef(key, 'Zoe\u0308')).toBe(principalRef(key, 'Zo\u00eb'));
  });

  it.each([
    ['case', 'zo\u00eb'],
    ['a blank', 'Zo\u00eb '],
    ['a letter that only looks alike', '\u0396o\u00eb'],
    ['a compatibility form', '\uff3ao\u00eb'],
  ])('and other people for %s', (_what, other) => {
    expect(principalRef(key, other)).not.toBe(principalRef(key, 'Zo\u00eb'));
  });
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

describe('browserPrincipalId', () => {
  const secret = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex');

  it('is b_ and the SHA-256 of the 32 bytes, not of their text', () => {
    const expected = `b_${createHash('sha256').update(secret).digest('base64url')}`;
    expect(browserPrincipalId(secret.toString('base64url'))).toBe(expected);
    expect(expected).toBe('b_Yw3NKWbEM2aRElRIu7JbT_QSpJxzLbLIq8G4WBvXEN0');
  });
});
