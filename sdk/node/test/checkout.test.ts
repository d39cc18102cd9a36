import { expect, test } from 'vitest';
import { FakeConsent } from '../src/fake.ts';
import type { Verdict } from '../src/types.ts';

/** The shared cases have the rules; these are values that other languages cannot pass. */

test.each([undefined, null, 7, {}])('the page may send anything: %j', async (requestId) => {
  expect(await new FakeConsent().checkout(requestId)).toBe('no-verdict');
});

test.each<[string, Partial<Verdict>]>([
  ['proceed', { context: 'order-1' }],
  ['no-verdict', { context: 'order-2' }],
  ['no-verdict', {}],
])('%s for order-1 by a verdict with %j', async (advice, verdict) => {
  const fake = new FakeConsent();
  fake.setDecision('req_1', verdict);
  expect(await fake.checkout('req_1', { context: 'order-1' })).toBe(advice);
  expect(await fake.checkout('req_1')).toBe('proceed');
});

test.each([1.5, Number.NaN])('refuses a deadline of %s', async (deadlineMs) => {
  await expect(new FakeConsent().checkout('req_1', { deadlineMs })).rejects.toMatchObject({
    kind: 'invalid-request',
  });
});
