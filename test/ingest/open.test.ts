import { expect, it } from 'vitest';
import { readPlaintext, unseal } from '../../src/ingest/open.ts';
import { sealTo } from '../../src/seal/seal.ts';
import { createPair } from '../seal/support.ts';
import { createIngestTenant, makePlaintext, seededRandom } from '../support/make.ts';

it('a bundle is tried by the newest generation first, and by no more of them than needed', () => {
  const random = seededRandom('test/ingest/open');
  const text = JSON.stringify(makePlaintext());
  const triedKeys: string[] = [];
  const opener = (name: string, opens: boolean) => ({
    generation: 1,
    open() {
      triedKeys.push(name);
      return opens ? Buffer.from(text) : null;
    },
  });
  const openers = [opener('newest', false), opener('older', true), opener('oldest', true)];
  const tenant = createIngestTenant([], { openers });
  const bundle = sealTo('acme', createPair(random(32)).publicKey, Buffer.from(text), random);
  readPlaintext(unseal(bundle, tenant), () => tenant);
  expect(triedKeys).toEqual(['newest', 'older']);
});
