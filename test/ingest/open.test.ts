import { describe, expect, it } from 'vitest';
import { readPlaintext, unseal } from '../../src/ingest/open.ts';
import type { TenantLookup } from '../../src/ingest/ports.ts';
import type { SealedBundle } from '../../src/schema/bundle.ts';
import { sealTo } from '../../src/seal/seal.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { createPair } from '../seal/support.ts';
import { createIngestTenant, makePlaintext, seededRandom } from '../support/make.ts';

const random = seededRandom('test/ingest/open');
const [newest, older, foreign] = [createPair(random(32)), createPair(random(32)), createPair(random(32))];
const tenant = createIngestTenant([newest.scalar, older.scalar]);

const lookup =
  (...tenants: readonly Tenant[]) =>
  (kid: string): Tenant | undefined =>
    tenants.find((candidate) => candidate.kid === kid);

const openBundle = (bundle: SealedBundle, tenants: TenantLookup) =>
  readPlaintext(unseal(bundle, tenants(bundle.kid)), tenants);

const text = JSON.stringify(makePlaintext());
const seal = (to = newest): SealedBundle => sealTo('acme', to.publicKey, Buffer.from(text), random);

describe('unseal and readPlaintext', () => {
  it('opens with any live generation, and tells whose it is', () => {
    for (const pair of [newest, older])
      expect(openBundle(seal(pair), lookup(tenant))).toEqual({
        ok: true,
        tenant,
        plaintext: JSON.parse(text),
      });
  });

  it('asks the newest generation first, and no further than needed', () => {
    const triedKeys: string[] = [];
    const opener = (name: string, opens: boolean) => ({
      generation: 1,
      open() {
        triedKeys.push(name);
        return opens ? Buffer.from(text) : null;
      },
    });
    const openers = [opener('newest', false), opener('older', true), opener('oldest', true)];
    openBundle(seal(), lookup(createIngestTenant([], { openers })));
    expect(triedKeys).toEqual(['newest', 'older']);
  });

  it('fails to decrypt what was sealed to a foreign or destroyed generation', () => {
    const refused = { ok: false, reason: 'decrypt-failed' };
    expect(openBundle(seal(foreign), lookup(tenant))).toEqual(refused);
    expect(openBundle(seal(), lookup(createIngestTenant([])))).toEqual(refused);
  });
});
