import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import type { Refusal } from '../../../src/lib/errors.ts';
import {
  activeClaim,
  askSubject,
  type Contest,
  claimContest,
  extendContest,
  fileContest,
  releaseContest,
  resolveContest,
} from '../../../src/rights/contests/contest.ts';
import { fc } from '../../support/property.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');

const open = (): Contest =>
  fileContest(
    {
      kid: 'acme',
      contestId: 'con_1',
      requestId: 'req_1',
      durable: 'd',
      class: 'unknown',
      filedBy: 'anna',
      statement: null,
    },
    NOW,
  );
const rita = { by: 'rita', label: 'Rita' };
const ruth = { by: 'ruth', label: 'Ruth' };
const rule = { outcome: 'upheld', reason: 'r', role: 'reviewer', version: null, fourEyes: false } as const;

function code(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Refusal).code;
  }
  return 'nothing';
}

describe('extending', () => {
  const at = { now: NOW, profile: 'gdpr' } as const;
  const longer = { days: 61, reason: 'more' };

  it('moves the due date once, keeps the first, and lets the clock tell again', () => {
    const notified = { ...open(), dueNotice: 1 };
    const extended = extendContest(notified, 'rita', longer, at);
    expect(extended).toMatchObject({
      dueAt: notified.dueAt + 61 * DAY,
      extendedFrom: notified.dueAt,
      extensionReason: 'more',
      dueNotice: 0,
      version: notified.version + 1,
    });
    expect(code(() => extendContest(extended, 'rita', longer, at))).toBe('stale-version');
  });

  it('is refused when it is late, resolved, held by another, one’s own, or more than the law allows', () => {
    const afterDue = { ...at, now: open().dueAt + 1 };
    expect(code(() => extendContest(open(), 'rita', longer, afterDue))).toBe('stale-version');
    const resolved = resolveContest(open(), { ...rule, by: 'rita' }, NOW);
    expect(code(() => extendContest(resolved, 'rita', longer, at))).toBe('already-resolved');
    const claimed = claimContest(open(), rita, NOW);
    expect(code(() => extendContest(claimed, 'ruth', longer, at))).toBe('claimed-by-another');
    expect(code(() => extendContest(open(), 'anna', longer, at))).toBe('self-review-denied');
    for (const profile of ['ccpa', 'dpdp'] as const)
      expect(code(() => extendContest(open(), 'rita', longer, { now: NOW, profile }))).toBe(
        'invalid-request',
      );
  });
});

describe('claiming', () => {
  it('holds a case for an hour against others, can be renewed and given back', () => {
    const claimed = claimContest(open(), rita, NOW);
    expect(activeClaim(claimed, NOW + HOUR - 1)).toMatchObject(rita);
    expect(code(() => claimContest(claimed, ruth, NOW + HOUR - 1))).toBe('claimed-by-another');
    expect(claimContest(claimed, rita, NOW + 1000).claim?.until).toBe(NOW + 1000 + HOUR);
    expect(claimContest(claimed, ruth, NOW + HOUR).claim).toMatchObject(ruth);
    expect(code(() => releaseContest(claimed, 'ruth', NOW))).toBe('claimed-by-another');
    expect(releaseContest(claimed, 'rita', NOW).claim).toBeNull();
    expect(releaseContest(open(), 'rita', NOW)).toEqual(open());
  });

  it('keeps others from deciding and from asking, and not the holder', () => {
    const claimed = claimContest(open(), rita, NOW);
    expect(code(() => resolveContest(claimed, { ...rule, by: 'ruth' }, NOW))).toBe('claimed-by-another');
    expect(code(() => askSubject(claimed, 'ruth', 'why?', NOW))).toBe('claimed-by-another');
    expect(askSubject(claimed, 'rita', 'why?', NOW)).toMatchObject({ question: 'why?', askedAt: NOW });
    expect(resolveContest(claimed, { ...rule, by: 'rita' }, NOW)).toMatchObject({
      status: 'resolved',
      claim: null,
    });
  });

  it('is for nobody who filed it, and for no case that is over', () => {
    const anna = { by: 'anna', label: 'Anna' };
    expect(code(() => claimContest(open(), anna, NOW))).toBe('self-review-denied');
    expect(code(() => askSubject(open(), 'anna', 'q', NOW))).toBe('self-review-denied');
    const over = resolveContest(open(), { ...rule, by: 'rita' }, NOW);
    expect(code(() => claimContest(over, rita, NOW))).toBe('already-resolved');
    expect(code(() => releaseContest(over, 'rita', NOW))).toBe('already-resolved');
    expect(code(() => askSubject(over, 'rita', 'q', NOW))).toBe('already-resolved');
  });
});

describe('deciding', () => {
  it('with four eyes a proposal waits for another person, and a different one takes its place', () => {
    const four = { ...rule, fourEyes: true };
    const proposed = resolveContest(open(), { ...four, by: 'rita' }, NOW);
    expect(proposed).toMatchObject({ status: 'open', proposal: { outcome: 'upheld', by: 'rita' } });
    expect(resolveContest(proposed, { ...four, by: 'rita' }, NOW)).toBe(proposed);
    const other = resolveContest(proposed, { ...four, outcome: 'overturned', by: 'ruth' }, NOW);
    expect(other).toMatchObject({ status: 'open', proposal: { outcome: 'overturned', by: 'ruth' } });
    expect(resolveContest(other, { ...four, outcome: 'overturned', by: 'rita' }, NOW)).toMatchObject({
      status: 'resolved',
      outcome: 'overturned',
      resolvedBy: { ref: 'rita' },
    });
  });

  it('the reason of whoever proposed stays beside the ruling of another, and one’s own becomes the ruling', () => {
    const four = { ...rule, fourEyes: true };
    const proposed = resolveContest(open(), { ...four, reason: 'first', by: 'rita', label: 'Rita' }, NOW);
    const confirmed = resolveContest(proposed, { ...four, reason: 'second', by: 'ruth', label: 'Ruth' }, NOW);
    expect(confirmed).toMatchObject({
      status: 'resolved',
      reason: 'second',
      resolvedLabel: 'Ruth',
      proposal: { reason: 'first', by: 'rita', label: 'Rita' },
    });
    // Four eyes were switched off meanwhile.
    const resolved = resolveContest(proposed, { ...rule, by: 'rita' }, NOW);
    expect(resolved).toMatchObject({ status: 'resolved', proposal: null });
  });

  it('any order of steps by any people ends in one outcome at most, and never by who filed it', () => {
    const person = fc.constantFrom('anna', 'rita', 'ruth');
    const outcome = fc.constantFrom('upheld' as const, 'overturned' as const);
    const step = fc.oneof(
      fc.record({ do: fc.constant('claim' as const), by: person }),
      fc.record({ do: fc.constant('release' as const), by: person }),
      fc.record({ do: fc.constant('ask' as const), by: person }),
      fc.record({ do: fc.constant('resolve' as const), by: person, outcome }),
      fc.record({ do: fc.constant('wait' as const), by: person }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.boolean(), (steps, fourEyes) => {
        let contest = open();
        let now = NOW;
        let decided: string | null = null;
        for (const next of steps) {
          const before = contest;
          if (next.do === 'wait') now += HOUR / 2;
          try {
            if (next.do === 'claim') contest = claimContest(contest, { by: next.by, label: next.by }, now);
            if (next.do === 'release') contest = releaseContest(contest, next.by, now);
            if (next.do === 'ask') contest = askSubject(contest, next.by, 'q', now);
            if (next.do === 'resolve')
              contest = resolveContest(
                contest,
                { ...rule, outcome: next.outcome, by: next.by, fourEyes },
                now,
              );
          } catch (error) {
            expect((error as Refusal).name).toBe('Refusal');
          }
          expect(contest.version).toBe(contest === before ? before.version : before.version + 1);
          expect(contest.resolvedBy?.ref).not.toBe('anna');
          expect(contest.claim?.by).not.toBe('anna');
          if (contest.status === 'resolved') {
            decided ??= contest.outcome;
            expect(contest.outcome).toBe(decided);
          }
          expect(contest.dueAt).toBe(open().dueAt);
        }
      }),
      { numRuns: 500 },
    );
  });
});
