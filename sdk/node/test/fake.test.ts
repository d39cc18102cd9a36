import { expect, test } from 'vitest';
import { FakeConsent } from '../src/fake.ts';

/** Parts of the fake that no shared case can see. */

test('remembers its calls', async () => {
  const fake = new FakeConsent();
  fake.setDecision('req_1', {});
  const check = { principalId: 'u-1', purpose: 'newsletter' };
  await fake.isAllowed(check);
  await fake.reportOutcome('req_1', 'fraud', { at: '2026' });
  expect(fake.calls).toEqual([
    { method: 'isAllowed', args: [check] },
    { method: 'reportOutcome', args: ['req_1', 'fraud', { at: '2026' }] },
  ]);
});

test('fails with the facts that it was told', async () => {
  const fake = new FakeConsent();
  fake.setNextError('rate-limited', { retryAfterSeconds: 9 });
  await expect(fake.ping()).rejects.toMatchObject({
    kind: 'rate-limited',
    status: 429,
    retryAfterSeconds: 9,
  });
});
