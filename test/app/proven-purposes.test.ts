import { expect, it } from 'vitest';
import { makeConsentService } from '../../src/app/consent-service.ts';
import { makeProveConsent } from '../../src/app/proven-purposes.ts';
import { TenantGone } from '../../src/lib/errors.ts';
import { makeConsentAppender } from '../../src/storage/consent-append.ts';
import { makeConsentStateReader } from '../../src/storage/consent-state.ts';
import { openDatabase } from '../../src/storage/db.ts';

it('nothing is proven of a tenant that went after its bundle came, and nothing else is taken for that', async () => {
  const database = await openDatabase({ location: ':memory:', create: true });
  const reader = makeConsentStateReader(database);
  const appender = makeConsentAppender(database);
  const service = makeConsentService({ database, reader, appender, clock: Date.now });
  const proveOf = (error: Error) =>
    makeProveConsent(database, service, () => {
      throw error;
    });
  const claim = { kid: 'k', principalId: 'p', needed: 'n', purposes: ['n'], proof: { seq: 1, hash: 'h' } };
  expect(await proveOf(new TenantGone())(claim)).toEqual([]);
  await expect(proveOf(new RangeError('another'))(claim)).rejects.toThrow('another');
  await database.close();
});
