import { expect, test } from 'vitest';
import { FakeConsent } from '../src/fake.ts';

/** The shared cases have the rules; these are values that other languages cannot pass. */

test.each([undefined, null, 7, {}])('the page may send anything: %j', async (requestId) => {
  expect(await new FakeConsent().checkout(requestId)).toBe('no-verdict');
});

test.each([1.5, Number.NaN])('refuses a deadline of %s', async (deadlineMs) => {
  await expect(new FakeConsent().checkout('req_1', { deadlineMs })).rejects.toMatchObject({
    kind: 'invalid-request',
  });
});
