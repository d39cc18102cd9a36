import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeRecord, encodeRecord, UNKNOWN_PROOF } from '../../src/banner/compact.ts';
import type { Choice, ConsentRecord, Write } from '../../src/banner/record.ts';
import { createChoice, createRecord } from './support.ts';

/** The record as the text of a cookie. */

const NAME = 'gpd_record_shop=';
const SECOND = 1000;
const HOUR = 3_600_000;
/** A cookie has only these characters (RFC 6265, section 4.1.1). */
const COOKIE_TEXT = /^[!#-+\--:<-[\]-~]*$/;

const ids = (count: number, length: number): string[] =>
  Array.from({ length: count }, (_, i) => `purpose-${i}-`.padEnd(length, 'x'));

it.each<[what: string, record: ConsentRecord]>([
  [
    'granted, each in other words',
    createRecord(
      Object.fromEntries(ids(12, 20).map((id, i) => [id, createChoice({ definition: 1000 + i * 2 })])),
      { followsLedger: true },
    ),
  ],
  [
    'refused and not sent',
    createRecord(
      Object.fromEntries(ids(12, 20).map((id) => [id, createChoice({ choice: 'denied', proof: null })])),
      {
        pending: [
          { action: 'deny', purposes: ids(12, 20), policyVersion: 120, gpc: true, key: 'k'.repeat(22) },
        ],
      },
    ),
  ],
])('twelve purposes of twenty characters fit into 400 bytes: %s', (_what, record) => {
  const text = encodeRecord(record);
  expect(`${NAME}${text}`.length).toBeLessThanOrEqual(400);
  expect(decodeRecord(text)?.choices).toHaveProperty('purpose-11-xxxxxxxxx');
});

const choice = fc.record({
  choice: fc.constantFrom('granted', 'denied', 'withdrawn'),
  version: fc.nat(999),
  definition: fc.option(fc.nat(99_999)),
  at: fc.nat(4e9).map((seconds) => seconds * SECOND),
  isSent: fc.boolean(),
  gpc: fc.boolean(),
});

it('any record is read as it was written, but for expiry and proof', () => {
  const id = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,63}$/);
  const property = fc.property(
    fc.dictionary(id, choice, { noNullPrototype: true }),
    fc.boolean(),
    (drawn, follows) => {
      const pending: Write[] = [];
      const choices = Object.entries(drawn).map(([purpose, { isSent, gpc, ...rest }]): [string, Choice] => {
        const isRecorded = isSent || rest.choice === 'granted';
        const key = `key-${pending.length}`;
        const action = rest.choice === 'denied' ? 'deny' : 'withdraw';
        if (!isRecorded) pending.push({ action, purposes: [purpose], policyVersion: rest.version, gpc, key });
        return [purpose, { ...rest, until: 0, proof: isRecorded ? UNKNOWN_PROOF : null }];
      });
      const extras = { pending, confirmedAt: 7 * HOUR, ...(follows && { followsLedger: true }) };
      const record = createRecord(Object.fromEntries(choices), extras);
      const text = encodeRecord(record);
      expect(text).toMatch(COOKIE_TEXT);
      const found = decodeRecord(text);
      const order = (writes: readonly Write[] = []) => writes.map(({ key }) => key).toSorted();
      expect({ ...found, pending: order(found?.pending) }).toEqual({ ...record, pending: order(pending) });
    },
  );
  fc.assert(property);
});

it('a grant that has ended is not written', () => {
  const text = encodeRecord(createRecord({ ads: createChoice({ ended: 'policy-outdated' }) }));
  expect(decodeRecord(text)?.choices).toEqual({});
});

it.each([
  ['empty', ''],
  ['cut off', encodeRecord(createRecord({ ads: createChoice() })).slice(0, -1)],
  ['of something else', 'GA1.1.123456789'],
  ['with an unknown flag', encodeRecord(createRecord({ ads: createChoice() })).replace('~G', '~Q')],
])('a text that no banner wrote grants nothing: %s', (_what, text) => {
  expect(decodeRecord(text)).toBeNull();
});
