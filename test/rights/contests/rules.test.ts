import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import type { Refusal } from '../../../src/lib/errors.ts';
import { createCaseKey, hashCaseKey } from '../../../src/rights/contests/case-by-key-service.ts';
import {
  askSubject,
  type Contest,
  claimContest,
  extendContest,
  fileContest,
  releaseContest,
  resolveContest,
} from '../../../src/rights/contests/contest.ts';
import { LONGEST_MS, PERIODS } from '../../../src/rights/contests/period.ts';
import { fc } from '../../support/property.ts';

/** The rules of a contest as pure functions: its steps, its periods and its key. */

const NOW = Date.parse('2026-11-20T12:00:00Z');
const AT = { now: NOW, profile: 'gdpr' } as const;

const open = (): Contest => {
  const ids = { kid: 'acme', contestId: 'con_1', requestId: 'req_1', durable: 'd' };
  return fileContest({ ...ids, class: 'unknown', filedBy: 'anna', statement: null }, NOW);
};
const claimedBy = (by: string, contest = open(), now = NOW): Contest =>
  claimContest(contest, { by, label: by }, now);
const rule = { outcome: 'upheld', reason: 'r', role: 'reviewer', version: null, fourEyes: false } as const;
const resolve = (contest: Contest, by: string, over: Partial<Parameters<typeof resolveContest>[1]> = {}) =>
  resolveContest(contest, { ...rule, by, label: by, ...over }, NOW);
const extend = (contest: Contest, by = 'rita', at: object = {}) =>
  extendContest(contest, by, { days: 61, reason: 'more' }, { now: NOW, profile: 'gdpr', ...at });

describe('the steps of a contest', () => {
  const claimed = claimedBy('rita');
  const resolved = resolve(open(), 'rita');
  it.each<[string, string, () => unknown]>([
    ['a claim of a claimed one', 'claimed-by-another', () => claimedBy('ruth', claimed, NOW + HOUR - 1)],
    ['a release of a claimed one', 'claimed-by-another', () => releaseContest(claimed, 'ruth', NOW)],
    ['a ruling on a claimed one', 'claimed-by-another', () => resolve(claimed, 'ruth')],
    ['a question in a claimed one', 'claimed-by-another', () => askSubject(claimed, 'ruth', 'why?', AT)],
    ['an extension of a claimed one', 'claimed-by-another', () => extend(claimed, 'ruth')],
    ['a claim of what is over', 'already-resolved', () => claimedBy('rita', resolved)],
    ['a release of what is over', 'already-resolved', () => releaseContest(resolved, 'rita', NOW)],
    ['an extension of what is over', 'already-resolved', () => extend(resolved)],
    ['a claim of one’s own', 'self-review-denied', () => claimedBy('anna')],
    ['a question in one’s own', 'self-review-denied', () => askSubject(open(), 'anna', 'q', AT)],
    ['an extension of one’s own', 'self-review-denied', () => extend(open(), 'anna')],
    ['a second extension', 'stale-version', () => extend(extend(open()))],
    ['an extension that is late', 'stale-version', () => extend(open(), 'rita', { now: open().dueAt + 1 })],
    ['more days than in California', 'invalid-request', () => extend(open(), 'rita', { profile: 'ccpa' })],
    ['more days than in India', 'invalid-request', () => extend(open(), 'rita', { profile: 'dpdp' })],
  ])('refuse %s', (_what, code, act) => {
    expect(act).toThrow(expect.objectContaining({ code }) as Error);
  });

  it('an extension keeps the first date, and lets the clock tell again', () => {
    const notified = { ...open(), dueNotice: 1 };
    const { dueAt } = notified;
    const moved = { dueAt: dueAt + 61 * DAY, extendedFrom: dueAt, dueNotice: 0 };
    expect(extend(notified)).toMatchObject({ ...moved, extensionReason: 'more' });
  });

  it('a claim is for an hour, can be renewed and given back, and goes with the ruling of its holder', () => {
    expect(claimedBy('rita', claimed, NOW + 1000).claim?.until).toBe(NOW + 1000 + HOUR);
    expect(claimedBy('ruth', claimed, NOW + HOUR).claim?.by).toBe('ruth');
    expect(releaseContest(claimed, 'rita', NOW).claim).toBeNull();
    expect(releaseContest(open(), 'rita', NOW)).toEqual(open());
    expect(askSubject(claimed, 'rita', 'why?', AT)).toMatchObject({ question: 'why?', askedAt: NOW });
    expect(resolve(claimed, 'rita')).toMatchObject({ status: 'resolved', claim: null });
  });

  it('with four eyes a different proposal takes the place of the first, and one’s own becomes the ruling', () => {
    const four = { fourEyes: true, outcome: 'overturned' } as const;
    const proposed = resolve(open(), 'rita', { fourEyes: true });
    expect(resolve(proposed, 'rita', { fourEyes: true })).toBe(proposed);
    const other = resolve(proposed, 'ruth', four);
    expect(other).toMatchObject({ status: 'open', proposal: { outcome: 'overturned', by: 'ruth' } });
    const confirmed = { status: 'resolved', resolvedBy: { ref: 'rita' }, resolvedLabel: 'rita' };
    expect(resolve(other, 'rita', four)).toMatchObject({ ...confirmed, proposal: { by: 'ruth' } });
    // Four eyes were switched off meanwhile.
    expect(resolve(proposed, 'rita')).toMatchObject({ status: 'resolved', proposal: null });
  });

  it('any order of steps by any people ends in one outcome at most, and never by who filed it', () => {
    const step = fc.record({
      act: fc.constantFrom('claim', 'release', 'ask', 'resolve', 'wait'),
      by: fc.constantFrom('anna', 'rita', 'ruth'),
      outcome: fc.constantFrom('upheld' as const, 'overturned' as const),
    });
    const take = (
      contest: Contest,
      { act, by, outcome }: { by: string; act: string; outcome: 'upheld' | 'overturned' },
      now: number,
      fourEyes: boolean,
    ) => {
      if (act === 'claim') return claimedBy(by, contest, now);
      if (act === 'release') return releaseContest(contest, by, now);
      if (act === 'ask') return askSubject(contest, by, 'q', { ...AT, now });
      return act === 'wait' ? contest : resolveContest(contest, { ...rule, outcome, by, fourEyes }, now);
    };
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.boolean(), (steps, fourEyes) => {
        let contest = open();
        let now = NOW;
        let decided: string | null = null;
        for (const next of steps) {
          const before = contest;
          if (next.act === 'wait') now += HOUR / 2;
          try {
            contest = take(contest, next, now, fourEyes);
          } catch (error) {
            expect((error as Refusal).name).toBe('Refusal');
          }
          expect(contest.version).toBe(contest === before ? before.version : before.version + 1);
          expect([contest.resolvedBy?.ref, contest.claim?.by]).not.toContain('anna');
          decided ??= contest.outcome;
          expect(contest.outcome).toBe(decided);
          expect(contest.dueAt).toBe(open().dueAt);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('periods', () => {
  it.each([
    ['2026-01-15T10:20:30.456Z', '2026-02-15T10:20:30.456Z'],
    ['2026-01-31T23:59:59.999Z', '2026-02-28T23:59:59.999Z'],
    ['2028-01-31T00:00:00.000Z', '2028-02-29T00:00:00.000Z'],
    ['2026-12-31T12:00:00.000Z', '2027-01-31T12:00:00.000Z'],
    ['2026-02-28T12:00:00.000Z', '2026-03-28T12:00:00.000Z'],
  ])('one calendar month on: %s → %s', (from, to) => {
    expect(new Date(PERIODS.gdpr.dueAt(Date.parse(from))).toISOString()).toBe(to);
  });

  it('are of other laws 45 and 90 days, and nothing is due later than the longest of them', () => {
    const { ccpa, dpdp } = PERIODS;
    expect([ccpa.dueAt(NOW) - NOW, ccpa.extendDays]).toEqual([45 * DAY, 45]);
    expect([dpdp.dueAt(NOW) - NOW, dpdp.extendDays]).toEqual([90 * DAY, 0]);
    for (let month = 0; month < 12; month += 1) {
      const at = Date.UTC(2027, month, 1);
      for (const { dueAt, extendDays } of Object.values(PERIODS))
        expect(dueAt(at) + extendDays * DAY - at).toBeLessThanOrEqual(LONGEST_MS);
    }
  });
});

describe('a case key', () => {
  const KEY = '01AB0-1CDEF-GHJKM-NPQRS-TVWXY-Z';
  const hash = (text: string): string => hashCaseKey(Buffer.alloc(32, 5), text);

  it('is 128 bits in Crockford base32, in groups of five', () => {
    expect(createCaseKey((size) => Buffer.alloc(size, 0xff))).toBe('7ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z');
    expect(createCaseKey((size) => Buffer.alloc(size))).toBe('00000-00000-00000-00000-00000-0');
    const bytes = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
    expect(createCaseKey(() => bytes)).toBe('00041-06105-0R3GG-28A1C-60T3G-F');
    expect(createCaseKey(randomBytes)).toMatch(/^([0-9A-HJKMNP-TV-Z]{5}-){5}[0-9A-HJKMNP-TV-Z]$/);
  });

  it.each([
    ['in lower case', '01ab0-1cdef-ghjkm-npqrs-tvwxy-z'],
    ['without hyphens', '01AB01CDEFGHJKMNPQRSTVWXYZ'],
    ['with spaces', ' 01AB0 1CDEF GHJKM NPQRS TVWXY Z\n'],
    ['with what looks alike', 'OIabo-LCDEF-GHJKM-NPQRS-TVWXY-Z'],
  ])('is the same %s', (_how, text) => {
    expect(hash(text)).toBe(hash(KEY));
  });

  it('differs by one character, by one too few or too many, and by the secret', () => {
    const otherHashes = [KEY.slice(0, -1), `${KEY}0`, `0${KEY}`, KEY.replace('Z', 'Y'), '', 'Ü'].map(hash);
    expect(new Set([hash(KEY), ...otherHashes, hashCaseKey(Buffer.alloc(32, 6), KEY)]).size).toBe(8);
  });
});
