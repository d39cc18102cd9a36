import { describe, expect, it } from 'vitest';
import { type AttentionFacts, listAttention } from '../../src/console/attention.ts';
import { chooseHeadline, type HeadlineFacts } from '../../src/console/overview-headline.ts';
import { DAY } from '../../src/lib/clock.ts';
import { KID } from '../support/constants.ts';
import { NOW } from '../support/make.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change } from './support/data.ts';

/** The overview answers: its first sentence, its figures, and what needs attention with the next act. */

const CALM: HeadlineFacts = {
  now: NOW,
  mayRule: true,
  due: { late: 0, two: 0, seven: 0, later: 0 },
  cap: 1000,
  urgent: null,
  waiting: 0,
  attention: null,
  automated: null,
  before: null,
  beforeText: 'the 24 hours before',
};
const urgent = { contestId: 'con_1', filedAt: NOW - 31 * DAY };

describe('the headline', () => {
  it.each([
    [{ due: { late: 5, two: 3, seven: 6, later: 18 } }, '5 objections are overdue', 'Open the oldest'],
    [{ due: { late: 1, two: 0, seven: 0, later: 0 } }, '1 objection is overdue', 'Open the oldest'],
    [
      { due: { late: 1001, two: 0, seven: 0, later: 0 } },
      'more than 1,000 objections are overdue',
      'Open the oldest',
    ],
    [{ due: { late: 0, two: 1, seven: 6, later: 18 } }, '1 objection is due within 2 days', 'Open the next'],
    [{ waiting: 2 }, '2 objections wait for you', 'Open the list'],
    [
      { attention: 'No backup was ever made', automated: '10.0' },
      'No backup was ever made',
      'See what to do',
    ],
    [{ automated: '10.0', before: '7.9' }, '10.0 % of visits were automated', 'See the decisions'],
    [{}, 'Nothing needs you now', undefined],
  ])('%j: %s', (facts, title, act) => {
    const headline = chooseHeadline({ ...CALM, urgent, ...facts });
    expect([headline.title, headline.act?.text]).toEqual([title, act]);
  });

  it('what is more urgent comes first, whatever else is true', () => {
    const all = {
      due: { late: 1, two: 1, seven: 1, later: 1 },
      waiting: 1,
      attention: 'x',
      automated: '1.0',
    };
    const titles = [
      all,
      { ...all, due: { ...all.due, late: 0 } },
      { ...all, due: CALM.due },
      { ...all, due: CALM.due, waiting: 0 },
      { ...all, due: CALM.due, waiting: 0, attention: null },
    ].map((facts) => chooseHeadline({ ...CALM, urgent, ...facts }).title);
    expect(titles).toEqual([
      '1 objection is overdue',
      '1 objection is due within 2 days',
      '1 objection waits for you',
      'x',
      '1.0 % of visits were automated',
    ]);
  });

  it('an operator reads it, and gets no link that they cannot open', () => {
    const due = { late: 5, two: 3, seven: 6, later: 18 };
    const headline = chooseHeadline({ ...CALM, urgent, due, waiting: 3, mayRule: false });
    expect(headline).toEqual({
      title: '5 objections are overdue',
      lead: 'The oldest has waited 31 days. 3 more are due within 2 days.',
      act: null,
    });
    expect(chooseHeadline({ ...CALM, automated: '3.0', mayRule: false }).act).toBeNull();
  });
});

describe('what needs attention', () => {
  const fine: AttentionFacts = {
    kid: 'shop',
    now: NOW,
    failedEvents: 0,
    erasures: { held: 0, unfinished: 0 },
    lastBackupAt: NOW - DAY,
    needsBackup: true,
    weakeningActs: 0,
    untranslated: [],
    hasNotice: true,
    publishedKeyAt: NOW - DAY,
  };

  it.each([
    [{ failedEvents: 3 }, '3 events were not delivered', { command: 'gpd webhooks list shop' }],
    [
      { erasures: { held: 1, unfinished: 0 } },
      '1 erasure waits for a legal hold',
      { href: '/console/receipts', text: 'Open' },
    ],
    [
      { erasures: { held: 0, unfinished: 2 } },
      '2 erasures are not finished',
      { href: '/console/receipts', text: 'Open' },
    ],
    [{ lastBackupAt: null }, 'No backup was ever made', { command: 'gpd backup DIRECTORY' }],
    [{ lastBackupAt: NOW - 9 * DAY }, 'The last backup is 9 days old', { command: 'gpd backup DIRECTORY' }],
    [
      { weakeningActs: 1 },
      '1 act of the last 7 days weakened a safeguard or gave access',
      { href: '/console/audit', text: 'Look at it' },
    ],
    [
      { hasNotice: false },
      'People are not told who is responsible, or how to reach them',
      { command: 'gpd tenants set shop notice.contact=ADDRESS' },
    ],
    [
      { untranslated: ['Ads', 'Maps'] },
      'People read Ads, Maps in another language',
      { href: '/console/terms', text: 'Open' },
    ],
    [
      { publishedKeyAt: NOW - 400 * DAY },
      'The seal key is older than a year',
      { href: '/console/keys', text: 'Open' },
    ],
  ])('%j: %s', (facts, text, act) => {
    expect(listAttention({ ...fine, ...facts }, 'dpo')).toEqual([{ text, act }]);
  });

  it('is nothing if all is well, and names no page that this role cannot open', () => {
    expect(listAttention(fine, 'dpo')).toEqual([]);
    expect(listAttention({ ...fine, lastBackupAt: null, needsBackup: false }, 'dpo')).toEqual([]);
    const facts = { ...fine, weakeningActs: 2, erasures: { held: 1, unfinished: 1 } };
    for (const role of ['reviewer', 'operator'] as const)
      for (const { act } of listAttention(facts, role)) expect(act).toHaveProperty('command');
  });
});

describe('the page', () => {
  const site = started(() => startConsole());

  it('opens the oldest overdue objection, and counts what was answered', async () => {
    const dora = await signIn(site.url, 'dora');
    const contests: string[] = [];
    for (const device of ['one', 'two', 'three']) {
      const { requestId, visitorId } = await site.decide(device);
      contests.push(await site.contest(requestId, visitorId, `This is ${device}.`));
    }
    const now = Date.now();
    await change(site, async (tx) => {
      const of = (i: number) => tx('contests').where({ contest_id: contests[i] });
      await of(0).update({ filed_at: now - 33 * DAY, due_at: now - 2 * DAY });
      await of(1).update({ due_at: now + DAY });
      const resolved = {
        status: 'resolved',
        outcome: 'overturned',
        resolved_at: now - DAY,
        filed_at: now - 7 * DAY,
      };
      await of(2).update(resolved);
    });
    const { text } = await dora.get('/console/overview');
    expect(text).toContain('<h1 class="hero">1 objection is overdue</h1>');
    expect(text).toContain('The oldest has waited 33 days. 1 more is due within 2 days.');
    expect(text).toMatch(new RegExp(`href="/console/contests/${contests[0]}">Open the oldest<`));
    expect(text).toMatch(/>Overdue<\/a><\/span> <b>1<\/b> <span class="small quiet">of 2 open</);
    expect(text).toMatch(
      />Answered in 30 days<\/a><\/span> <b>1<\/b> <span[^>]*>median 6 days, 1 overturned, 0 in the 30 days before</,
    );
    // Another tenant has none of it.
    const olaf = await signIn(site.url, 'olaf');
    expect((await olaf.get('/console/overview')).text).toContain('of 0 open');
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=true']);
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=false']);
    expect((await dora.get('/console/overview')).text).toContain(
      '1 act of the last 7 days weakened a safeguard',
    );
  });
});
