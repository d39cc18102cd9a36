import { describe, expect, it } from 'vitest';
import {
  askablePurposes,
  askedPurposes,
  createReceipt,
  grantedPurposes,
  statusOf,
  whyAsked,
} from '../../src/banner/status.ts';
import { decideConsent } from '../../src/consent/decide.ts';
import { createFirstPurpose } from '../../src/tenants/purposes.ts';
import { NOW } from '../support/make.ts';
import { fc } from '../support/property.ts';
import {
  AGENT,
  createChoice,
  createConfig,
  createPurpose,
  createRecord,
  createTerms,
  DAY,
} from './support.ts';

const status = (choice: Parameters<typeof createChoice>[0] | null, gpc = false, purpose = createPurpose()) =>
  statusOf(
    createTerms({ gpc, record: createRecord(choice ? { [purpose.id]: createChoice(choice) } : {}) }),
    purpose,
  );

describe('a purpose', () => {
  it.each([
    ['never asked', null, 'unasked'],
    ['granted', {}, 'granted'],
    ['denied', { choice: 'denied' }, 'denied'],
    ['withdrawn', { choice: 'withdrawn' }, 'withdrawn'],
    ['granted, to its last millisecond', { until: NOW + 1 }, 'granted'],
    ['granted and over', { until: NOW }, 'expired'],
    // A refusal is silent for `refusalDays`, not for as long as a grant.
    ['denied longer ago than a grant lasts', { choice: 'denied', at: NOW - 182 * DAY, until: NOW }, 'denied'],
    ['withdrawn for as long', { choice: 'withdrawn', at: NOW - 182 * DAY, until: NOW }, 'withdrawn'],
    ['denied and over', { choice: 'denied', at: NOW - 183 * DAY, until: NOW + DAY }, 'expired'],
    ['granted, and only its time is known', { until: 0 }, 'granted'],
    ['granted long ago, and only its time is known', { at: NOW - 180 * DAY, until: 0 }, 'expired'],
    ['granted by a clock a little ahead', { at: NOW + DAY, until: NOW + 2 * DAY }, 'granted'],
    ['granted at a time to come', { at: NOW + DAY + 1, until: NOW + 2 * DAY }, 'expired'],
    ['granted under the material version', { version: 2 }, 'granted'],
    ['granted before it', { version: 1 }, 'policy-outdated'],
    ['denied before it', { choice: 'denied', version: 1 }, 'policy-outdated'],
    ['over and outdated', { version: 1, until: NOW }, 'expired'],
  ] as const)('%s', (_what, choice, expected) => {
    expect(status(choice)).toBe(expected);
  });

  it('is granted here only where the ledger says so too, and asked again for the same reason', () => {
    const place = fc.option(fc.integer({ min: 0, max: 6 }));
    fc.assert(
      fc.property(
        fc.record({ seq: fc.nat(6), outdatedUntil: place, optOutUntil: place, askUntil: place }),
        fc.record({
          choice: fc.constantFrom(
            'granted' as const,
            'granted' as const,
            'denied' as const,
            'withdrawn' as const,
          ),
          until: fc.constantFrom(NOW, NOW + 1),
          version: fc.integer({ min: 1, max: 3 }),
          overGpc: fc.boolean(),
          definition: place,
        }),
        fc.boolean(),
        fc.constantFrom('opt-out' as const, 'ask' as const, 'ignore' as const),
        (definition, chosen, gpc, policy) => {
          const { seq, outdatedUntil, ...places } = definition;
          const materialSince = outdatedUntil === null ? null : outdatedUntil + 1;
          const termsOf = () => ({
            ...createFirstPurpose(),
            gpc: policy,
            ...places,
            definition: seq,
            materialSince,
          });
          const rules = { termsOf, currentVersion: 3, materialVersion: 2, deniesDoubted: false };
          const { version: policyVersion, until: expiresAt, overGpc, ...rest } = chosen;
          const given = { given: null, doubtSeq: null, at: NOW, seq: 7, hash: 'a' };
          const event = { ...rest, ...given, policyVersion, expiresAt, overGpc };
          const state = { erased: false, gpc, withheld: false, event, head: { seq: 9, hash: 'b' } };
          const { reason } = decideConsent(AGENT, state, rules, NOW);
          const { overGpc: _, ...stored } = chosen;
          const here = status(
            { ...stored, ...(overGpc && { overGpc }) },
            gpc,
            createPurpose({ gpc: policy, definition }),
          );
          expect(here === 'granted').toBe(reason === 'granted');
          // Under the signal the banner asks nothing that the signal answers.
          if (here === 'gpc-opt-out') expect(gpc).toBe(true);
          else if (chosen.choice === 'granted') expect(here).toBe(reason);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('may be asked for over the signal once in a year, and never where the policy is another', () => {
    const ask = (over: Parameters<typeof createTerms>[0], policy: 'opt-out' | 'ask' | 'ignore' = 'ask') =>
      askablePurposes(
        createTerms({ config: createConfig({ purposes: [createPurpose({ gpc: policy })] }), ...over }),
      ).length;
    expect(ask({ gpc: true })).toBe(1);
    expect(ask({ gpc: true, askedAt: { [AGENT]: NOW - 365 * DAY } })).toBe(1);
    expect(ask({ gpc: true, askedAt: { [AGENT]: NOW - 365 * DAY + 1 } })).toBe(0);
    expect(ask({ gpc: true, askedAt: { [AGENT]: NOW + DAY } })).toBe(0);
    expect(ask({ gpc: false })).toBe(0);
    expect(ask({ gpc: true }, 'opt-out') + ask({ gpc: true }, 'ignore')).toBe(0);
    const record = createRecord({ [AGENT]: createChoice({ overGpc: true }) });
    expect(ask({ gpc: true, record })).toBe(0);
  });

  it('of the name of a property of every object was never asked', () => {
    expect(status(null, false, createPurpose({ id: 'constructor' }))).toBe('unasked');
  });
});

describe('what is asked', () => {
  it.each([
    ['the first time', {}, 'first', 2],
    ['for what is new', { [AGENT]: createChoice() }, 'purpose', 1],
    [
      'after a material change',
      { [AGENT]: createChoice({ version: 1 }), analytics: createChoice() },
      'policy',
      1,
    ],
    // The policy is the same: the purpose is a new one.
    ['in other words', { [AGENT]: createChoice({ definition: 0 }), analytics: createChoice() }, 'purpose', 1],
    ['after an expiry', { [AGENT]: createChoice({ until: NOW }), analytics: createChoice() }, 'expired', 1],
    ['nothing', { [AGENT]: createChoice({ choice: 'denied' }), analytics: createChoice() }, 'purpose', 0],
  ] as const)('%s', (_when, choices, reason, count) => {
    const terms = createTerms({ record: createRecord(choices) });
    expect(askedPurposes(terms)).toHaveLength(count);
    if (count > 0) expect(whyAsked(terms)).toBe(reason);
  });
});

describe('a receipt', () => {
  it('before any choice has nothing but the version and the signal', () => {
    expect(createReceipt(createTerms({ gpc: true }))).toEqual({
      purposes: [],
      gpc: true,
      version: 3,
      issuedAt: NOW,
    });
  });

  it('has version, time and proof of the agent’s own grant', () => {
    const proof = { seq: 41, hash: 'b'.repeat(64) };
    const ownChoice = createChoice({ version: 2, at: NOW - 2 * DAY, proof });
    const record = createRecord({ analytics: createChoice(), [AGENT]: ownChoice });
    expect(createReceipt(createTerms({ record }))).toEqual({
      purposes: [AGENT, 'analytics'],
      gpc: false,
      version: 2,
      issuedAt: NOW - 2 * DAY,
      proof,
      principalId: record.principalId,
    });
  });

  it('says of a yes over the signal that it is one, while the signal is on', () => {
    const config = createConfig({ purposes: [createPurpose({ gpc: 'ask' })] });
    const record = createRecord({ [AGENT]: createChoice({ overGpc: true }) });
    expect(createReceipt(createTerms({ config, record, gpc: true }))).toMatchObject({
      purposes: [AGENT],
      gpc: true,
      overGpc: true,
    });
    expect(createReceipt(createTerms({ config, record }))).not.toHaveProperty('overGpc');
  });

  it('after a refusal has the latest entry, and none while the ledger does not know', () => {
    const proof = { seq: 9, hash: 'c'.repeat(64) };
    const record = createRecord({
      [AGENT]: createChoice({ choice: 'denied', at: NOW - 1, proof }),
      analytics: createChoice({ choice: 'withdrawn', at: NOW - 2 }),
    });
    expect(createReceipt(createTerms({ record }))).toMatchObject({ purposes: [], proof, issuedAt: NOW - 1 });
    const unsaid = createRecord({ [AGENT]: createChoice({ choice: 'withdrawn', proof: null }) });
    expect(createReceipt(createTerms({ record: unsaid }))).not.toHaveProperty('proof');
  });

  it('never names a purpose that is not asked any more', () => {
    const record = createRecord({ gone: createChoice(), [AGENT]: createChoice() });
    const config = createConfig({ purposes: [createPurpose()] });
    expect(createReceipt(createTerms({ config, record })).purposes).toEqual([AGENT]);
    expect(grantedPurposes(createTerms({ config, record, gpc: true }))).toEqual([]);
  });
});
