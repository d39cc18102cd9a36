import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { makeConsentAppender } from '../../../src/consent/append-store.ts';
import { makeProveConsent } from '../../../src/consent/proven-purposes-service.ts';
import { makeConsentService } from '../../../src/consent/service.ts';
import { makeConsentStateReader } from '../../../src/consent/state-store.ts';
import { openDatabase } from '../../../src/db/engine.ts';
import { TenantGone } from '../../../src/lib/errors.ts';

it('nothing is proven of a tenant that went after its bundle came, and nothing else is taken for that', async () => {
  const database = await openDatabase({ location: ':memory:', create: true });
  const reader = makeConsentStateReader(database);
  const appender = makeConsentAppender(database);
  const service = makeConsentService({ database, reader, appender, clock: Date.now, random: randomBytes });
  const proveOf = (error: Error) =>
    makeProveConsent(database, service, () => {
      throw error;
    });
  const claim = {
    kid: 'k',
    principalId: 'p',
    purpose: 'n',
    purposes: ['n'],
    overGpc: [],
    proof: { seq: 1, hash: 'h' },
  };
  expect(await proveOf(new TenantGone())(claim)).toEqual([]);
  await expect(proveOf(new RangeError('another'))(claim)).rejects.toThrow('another');
  await database.close();
});
