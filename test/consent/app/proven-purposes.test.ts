import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createConsentAppender } from '../../../src/consent/append-store.ts';
import { createProveConsent } from '../../../src/consent/proven-purposes-service.ts';
import { createConsentService } from '../../../src/consent/service.ts';
import { createConsentStateReader } from '../../../src/consent/state-store.ts';
import { openDatabase } from '../../../src/db/engine.ts';
import { TenantGone } from '../../../src/lib/errors.ts';

it('nothing is proven of a tenant that went after its bundle came, and nothing else is taken for that', async () => {
  const database = await openDatabase({ location: ':memory:', create: true });
  const reader = createConsentStateReader(database);
  const appender = createConsentAppender(database);
  const service = createConsentService({ database, reader, appender, clock: Date.now, random: randomBytes });
  const proveOf = (error: Error) =>
    createProveConsent(database, service, () => {
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
