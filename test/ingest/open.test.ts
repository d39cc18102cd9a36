import { describe, expect, it } from 'vitest';
import { readPlaintext, unseal } from '../../src/ingest/open.ts';
import type { TenantLookup } from '../../src/ingest/ports.ts';
import type { SealedBundle } from '../../src/schema/bundle.ts';
import { createSymmetricOpener } from '../../src/seal/open.ts';
import { sealSymmetric, sealTo } from '../../src/seal/seal.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { createPair } from '../seal/support.ts';
import { createIngestTenant, makePlaintext, seededRandom } from '../support/make.ts';

const random = seededRandom('test/ingest/open');
const [newest, older, foreign] = [createPair(random(32)), createPair(random(32)), createPair(random(32))];
const shared = random(32);
const tenant = createIngestTenant([newest.scalar, older.scalar], {
  symmetricOpener: createSymmetricOpener(shared),
});
const withoutSymmetric = createIngestTenant([newest.scalar]);

const lookup =
  (...tenants: readonly Tenant[]) =>
  (kid: string): Tenant | undefined =>
    tenants.find((candidate) => candidate.kid === kid);

const openBundle = (bundle: SealedBundle, tenants: TenantLookup) =>
  readPlaintext(unseal(bundle, tenants(bundle.kid)), tenants);

const text = JSON.stringify(makePlaintext());
const seal = (plaintext: string | Buffer, to = newest, kid = 'acme'): SealedBundle =>
  sealTo(kid, to.publicKey, Buffer.from(plaintext as string), random);
const reasonOf = (bundle: SealedBundle, tenants = lookup(tenant)): string => {
  const opened = openBundle(bundle, tenants);
  return opened.ok ? 'ok' : opened.reason;
};

describe('unseal and readPlaintext', () => {
  it('opens with any live generation, and tells whose it is', () => {
    for (const pair of [newest, older])
      expect(openBundle(seal(text, pair), lookup(tenant))).toEqual({
        ok: true,
        tenant,
        plaintext: JSON.parse(text),
      });
  });

  it('opens the symmetric form', () => {
    expect(reasonOf(sealSymmetric('acme', shared, Buffer.from(text), random))).toBe('ok');
  });

  it('asks the newest generation first, and no further than needed', () => {
    const triedKeys: string[] = [];
    const opener = (name: string, opens: boolean) => () => {
      triedKeys.push(name);
      return opens ? Buffer.from(text) : null;
    };
    const openers = [opener('newest', false), opener('older', true), opener('oldest', true)];
    openBundle(seal(text), lookup(createIngestTenant([], { openers })));
    expect(triedKeys).toEqual(['newest', 'older']);
  });

  it('fails to decrypt what was sealed to a foreign or destroyed generation', () => {
    expect(reasonOf(seal(text, foreign))).toBe('decrypt-failed');
    expect(reasonOf(seal(text), lookup(createIngestTenant([])))).toBe('decrypt-failed');
  });

  it('tells an unknown kid by the form: a missing opener, or an unknown key (contract 3.1)', () => {
    expect(reasonOf(seal(text, newest, 'nobody'))).toBe('decrypt-failed');
    const symmetric = sealSymmetric('acme', shared, Buffer.from(text), random);
    expect(reasonOf({ ...symmetric, kid: 'nobody' })).toBe('unknown-key');
    expect(reasonOf(symmetric, lookup(withoutSymmetric))).toBe('unknown-key');
  });

  it('fails to decrypt a symmetric bundle of another key: the kid is known', () => {
    expect(reasonOf(sealSymmetric('acme', random(32), Buffer.from(text), random))).toBe('decrypt-failed');
  });

  it.each<[string, string | Buffer]>([
    ['nothing', ''],
    ['no JSON', 'hello'],
    ['JSON that is no object', '[]'],
    ['another version', JSON.stringify({ ...makePlaintext(), v: 2 })],
    ['an extra field', JSON.stringify({ ...makePlaintext(), extra: 1 })],
    ['a duplicate key', text.replace('{"v":1,', '{"v":1,"v":1,')],
    ['a nonce of 15 bytes', JSON.stringify(makePlaintext({ nonce: Buffer.alloc(15).toString('base64url') }))],
    ['a byte order mark', `\ufeff${text}`],
    ['bad UTF-8', Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.of(0xff), Buffer.from('}')])],
    [
      'more nesting than anybody needs',
      text.replace('"input":null', `"input":${'['.repeat(40)}${']'.repeat(40)}`),
    ],
  ])('makes a plaintext that is %s look like a bad tag', (_what, plaintext) => {
    expect(openBundle(seal(plaintext), lookup(tenant))).toEqual({ ok: false, reason: 'decrypt-failed' });
  });
});
