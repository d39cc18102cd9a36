import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../../src/ingest/verdict/classify.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { ENGLISH } from '../../../src/lib/people/say.ts';
import {
  acknowledgeComplaint,
  answerComplaint,
  complaintStatus,
} from '../../../src/rights/contests/complaint.ts';
import {
  answerQuestion,
  askSubject,
  type Contest,
  extendContest,
  fileContest,
  isPaused,
  resolveContest,
} from '../../../src/rights/contests/contest.ts';
import { complaintResponse } from '../../../src/rights/contests/record.ts';
import { fillNotices, type NoticeTexts } from '../../../src/rights/notice.ts';
import { createFirstPurpose, definedBy } from '../../../src/tenants/purposes.ts';
import { RIGHTS_PROFILES, tenantSettingsSchema } from '../../../src/tenants/settings.ts';

/**
 * The duties of the United Kingdom's law, each with its source and the date from which it holds, against clocks and
 * texts of rights.profile uk. The sentences in `duty` are a summary.
 */

const at = (text: string): number => Date.parse(text);
const RECEIVED = at('2026-07-20T15:30:00Z');

const ids = { kid: 'shop', contestId: 'con_1', requestId: 'req_1', durable: 'd', class: 'unknown' };
const filed = (kind: Contest['kind'], now = RECEIVED): Contest =>
  fileContest({ ...ids, filedBy: 'anna', statement: 'no', kind }, now, 'uk');
const ask = (contest: Contest, time: string, profile: (typeof RIGHTS_PROFILES)[number] = 'uk'): Contest =>
  askSubject(contest, 'rita', 'Which visit?', { now: at(time), profile });
const reply = (contest: Contest, time: string): Contest => answerQuestion(contest, 'That one.', at(time));
const due = ({ dueAt }: Contest): string => new Date(dueAt).toISOString();

const texts = JSON.parse(
  readFileSync(new URL('../../../views/notice.en.json', import.meta.url), 'utf8'),
) as NoticeTexts;
const notice = (): string => {
  const settings = tenantSettingsSchema.parse({ 'rights.profile': 'uk' });
  const purposes = [definedBy(1, createFirstPurpose(), undefined, true)];
  const notices = fillNotices(
    texts,
    { kid: 'shop', settings, purposes },
    DEFAULT_POLICY,
    'https://id.example',
  );
  return notices.find(({ id }) => id === 'uk')?.text.join('\n') ?? '';
};

interface Duty {
  readonly source: string;
  /** When it came into force. */
  readonly from: string;
  readonly duty: string;
  readonly holds: () => void;
}

const DPA = 'Data Protection Act 2018, s.';
/** S.I. 2026/82, regulation 3: section 103. */
const COMPLAINTS_FROM = '2026-06-19';
/** S.I. 2026/82, regulation 2: sections 76 (article 12A) and 80 (articles 22A to 22D) of the Data (Use and Access) Act 2025. */
const ACT_FROM = '2026-02-05';
const DUTIES: readonly Duty[] = [
  {
    source: `${DPA} 164A(2)`,
    from: COMPLAINTS_FROM,
    duty: 'facilitate complaints: a form that can be completed electronically, and other means',
    holds: () =>
      expect(notice()).toMatch(
        /form at https:\/\/id\.example\/my-data\?kid=shop, or at \S+\/case .*or write to/,
      ),
  },
  {
    source: `${DPA} 164A(3)`,
    from: COMPLAINTS_FROM,
    duty: 'acknowledge within 30 days that begin when the complaint is received',
    holds() {
      expect(complaintResponse(filed('complaint'))).toMatchObject({
        status: 'received',
        acknowledgeBy: '2026-08-19T15:30:00.000Z',
      });
      expect(due(filed('complaint'))).toBe('2026-08-19T15:30:00.000Z');
      expect(notice()).toContain('within 30 days of receiving it');
    },
  },
  {
    source: `${DPA} 164A(4)(b)`,
    from: COMPLAINTS_FROM,
    duty: 'inform of the outcome without undue delay',
    holds() {
      const acknowledged = acknowledgeComplaint(filed('complaint'), 'rita', at('2026-07-21T09:00:00Z'));
      expect(complaintStatus(acknowledged)).toBe('acknowledged');
      const outcome = { text: 'We erased it.', role: 'dpo', by: 'rita' } as const;
      const answered = complaintResponse(answerComplaint(acknowledged, outcome, at('2026-07-22T09:00:00Z')));
      expect(answered).toMatchObject({ status: 'answered', outcome: 'We erased it.' });
      expect(notice()).toContain('tell you the outcome without undue delay');
    },
  },
  {
    source: `${DPA} 164A(5)`,
    from: COMPLAINTS_FROM,
    duty: 'make enquiries, and tell the complainant about progress',
    holds() {
      const inquiry = ask(filed('complaint'), '2026-07-21T09:00:00Z');
      expect(complaintResponse(inquiry)).toMatchObject({ status: 'received', question: 'Which visit?' });
    },
  },
  {
    source: 'UK GDPR, art. 12A: applicable time period',
    from: ACT_FROM,
    duty: 'one month, which may be extended by two further months with the reason',
    holds() {
      const contest = filed('contest', at('2026-01-31T10:00:00Z'));
      expect(due(contest)).toBe('2026-02-28T10:00:00.000Z');
      const context = { now: at('2026-02-01T00:00:00Z'), profile: 'uk' } as const;
      const extended = extendContest(contest, 'rita', { days: 61, reason: 'It is complex.' }, context);
      expect(due(extended)).toBe('2026-04-30T10:00:00.000Z');
    },
  },
  {
    source: 'UK GDPR, art. 12A: further information',
    from: ACT_FROM,
    duty: 'the days from the question to the answer, both included, do not count',
    holds() {
      const inquiry = ask(filed('contest'), '2026-07-25T23:59:00Z');
      expect(isPaused(inquiry)).toBe(true);
      expect(due(inquiry)).toBe('2026-08-20T15:30:00.000Z');
      const answered = reply(inquiry, '2026-07-28T00:01:00Z');
      expect(due(answered)).toBe('2026-08-24T15:30:00.000Z');
      // They do not count towards the month in which an extension has to be announced, either.
      const afterDue = { now: at('2026-08-23T00:00:00Z'), profile: 'uk' } as const;
      const extended = extendContest(answered, 'rita', { days: 61, reason: 'It is complex.' }, afterDue);
      expect(extended.extendedFrom).toBe(answered.dueAt);
      expect(answered).toMatchObject({ pausedFrom: inquiry.askedAt, pausedTo: answered.answeredAt });
      expect(notice()).toContain('the days from our question to your answer do not count');
    },
  },
  {
    source: 'UK GDPR, art. 22A(1)',
    from: ACT_FROM,
    duty: 'a decision is solely automated without meaningful human involvement: the person reads which it is',
    holds() {
      expect(ENGLISH.say('verdict.doubt')).toContain('No person has looked at it.');
      expect(ENGLISH.say('verdict.overturned')).toMatch(/^A reviewer decided this/);
    },
  },
  {
    source: 'UK GDPR, art. 22C(2)',
    from: ACT_FROM,
    duty: 'information about the decision, representations, human intervention, contest',
    holds() {
      for (const part of [
        'read each such decision',
        'make representations',
        'have a person look at it',
        'contest it',
      ])
        expect(notice()).toContain(part);
      const ruling = {
        outcome: 'overturned',
        reason: 'r',
        role: 'reviewer',
        version: null,
        fourEyes: false,
      } as const;
      const resolved = resolveContest(filed('contest'), { ...ruling, by: 'rita' }, RECEIVED + DAY);
      expect(resolved).toMatchObject({ statement: 'no', outcome: 'overturned', resolvedBy: { ref: 'rita' } });
    },
  },
  {
    source: 'UK GDPR, art. 22B(1)',
    from: ACT_FROM,
    duty: 'no significant decision by special categories of data alone',
    holds: () => expect(notice()).toContain('No special categories of personal data are used.'),
  },
  {
    source: 'UK GDPR, art. 22B(4)',
    from: ACT_FROM,
    duty: 'no significant decision in reliance on a recognised legitimate interest, article 6(1)(ea)',
    holds: () => expect(notice()).toContain('The basis is your consent (Art. 6(1)(a) UK GDPR'),
  },
  // Article 22D gives the Secretary of State a power to make regulations, and a controller no duty.
];

describe('the duties of the United Kingdom', () => {
  it.each(DUTIES)('$source (from $from): $duty', ({ holds }) => {
    holds();
  });

  it('counts a day once that ends one pause and begins the next', () => {
    const once = reply(ask(filed('contest'), '2026-07-25T08:00:00Z'), '2026-07-26T08:00:00Z');
    const twice = reply(ask(once, '2026-07-26T20:00:00Z'), '2026-07-27T08:00:00Z');
    expect(due(twice)).toBe('2026-08-23T15:30:00.000Z');
  });

  it('asks again without a second pause, and a ruling ends one', () => {
    const inquiry = ask(filed('contest'), '2026-07-25T08:00:00Z');
    const again = ask(inquiry, '2026-07-27T08:00:00Z');
    expect(again.pausedFrom).toBe(inquiry.pausedFrom);
    const ruling = {
      outcome: 'upheld',
      reason: 'r',
      role: 'reviewer',
      version: null,
      fourEyes: false,
    } as const;
    const resolved = resolveContest(again, { ...ruling, by: 'rita' }, at('2026-07-28T08:00:00Z'));
    expect(resolved).toMatchObject({ pausedTo: resolved.resolvedAt });
    expect(due(resolved)).toBe('2026-08-24T15:30:00.000Z');
  });

  it('moves the first date with the extended one', () => {
    const context = { now: RECEIVED + DAY, profile: 'uk' } as const;
    const extended = extendContest(filed('contest'), 'rita', { days: 10, reason: 'r' }, context);
    const answered = reply(ask(extended, '2026-07-25T08:00:00Z'), '2026-07-25T09:00:00Z');
    expect(answered.extendedFrom).toBe(at('2026-08-21T15:30:00Z'));
    expect(due(answered)).toBe('2026-08-31T15:30:00.000Z');
  });

  it('never pauses a period that has ended, a complaint, or another law', () => {
    const lateCase = ask(filed('contest'), '2026-08-20T15:30:01Z');
    expect(lateCase).toMatchObject({ pausedFrom: null, dueAt: filed('contest').dueAt });
    expect(ask(filed('complaint'), '2026-07-25T08:00:00Z').pausedFrom).toBeNull();
    for (const profile of RIGHTS_PROFILES.filter((name) => name !== 'uk'))
      expect(ask(filed('contest'), '2026-07-25T08:00:00Z', profile).pausedFrom).toBeNull();
  });
});
