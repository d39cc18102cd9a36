import { describe, expect, it } from 'vitest';
import { WORDS } from '../../src/console/words.ts';
import { DAY, HOUR } from '../../src/lib/clock.ts';
import { KID, REASON } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { createCase, resolveCase } from './support/cases.ts';
import { signIn, startConsole, type Visitor } from './support/console.ts';
import { change, rows } from './support/data.ts';

/** The desk of a case: its place among the due ones, and what opens after a ruling. */

const site = started(() => startConsole());
const ada = started(() => signIn(site.url, 'ada'));
const grace = started(() => signIn(site.url, 'grace'));

/** Makes these cases the only ones, each due a day after the one before; the first is overdue by two days. */
async function fileInOrder(...statements: readonly string[]) {
  await change(site, (tx) => tx('contests').delete());
  const cases: Awaited<ReturnType<typeof createCase>>[] = [];
  for (const statement of statements) cases.push(await createCase(site, statement));
  await change(site, async (tx) => {
    for (const [i, { contestId }] of cases.entries())
      await tx('contests')
        .where({ contest_id: contestId })
        .update({ due_at: Date.now() + (i - 2) * DAY - HOUR });
  });
  return cases;
}

const linkOf = (text: string, rel: string): string | null =>
  new RegExp(`rel="${rel}" href="([^"]+)"`).exec(text)?.[1] ?? null;
const titleOf = (text: string): string => /<title>([^<]*)<\/title>/.exec(text)?.[1] ?? '';
const headingOf = (text: string): string => /<h1[^>]*>([^<]*)<\/h1>/.exec(text)?.[1] ?? '';

it('previous and next follow the due dates, and the page says the place among what is overdue', async () => {
  const [first, second, third, last] = await fileInOrder('One.', 'Two.', 'Three.', 'Four.');
  const pages = [];
  for (const { path } of [first!, second!, third!, last!]) pages.push((await ada.get(path)).text);
  expect(pages.map((text) => [linkOf(text, 'prev'), linkOf(text, 'next')])).toEqual([
    [null, second!.path],
    [first!.path, third!.path],
    [second!.path, last!.path],
    [third!.path, null],
  ]);
  expect(pages[0]).toContain('overdue · 1 of 3');
  expect(pages[2]).toContain('overdue · 3 of 3');
  expect(pages[3]).toContain(' · 4 of 4');
});

it('the title tells tabs apart: how it stands, and how the statement begins', async () => {
  const [urgent, calm] = await fileInOrder(
    'I type with one switch and my computer fills the rest. I was looking for a lamp.',
    'Kurz.\nUnd mehr.',
  );
  const text = (await ada.get(urgent!.path)).text;
  expect(titleOf(text)).toBe('Overdue · I type with one switch and my… · gpd');
  expect(headingOf(text)).toBe('I type with one switch and my computer fills the rest.');
  expect(text).toMatch(/<blockquote[^>]*>I was looking for a lamp\.</);
  await change(site, (tx) =>
    tx('contests')
      .where({ contest_id: calm!.contestId })
      .update({ due_at: Date.now() + 3 * DAY + HOUR }),
  );
  expect(titleOf((await ada.get(calm!.path)).text)).toBe('Due in 3 days · Kurz. · gpd');
  await resolveCase(ada, urgent!.path, { outcome: 'upheld' });
  expect(titleOf((await ada.get(urgent!.path)).text)).toMatch(/^Upheld · /);
});

describe('after a ruling', () => {
  it('the next due case opens, with a link to the one that was decided', async () => {
    const [first, second] = await fileInOrder('One.', 'Two.', 'Three.');
    const { status, headers } = await resolveCase(ada, first!.path);
    expect([status, headers.location]).toEqual([303, second!.path]);
    const text = (await ada.get(second!.path)).text;
    expect(text).toContain(WORDS.caseDone.resolved);
    expect(text).toContain(`<a href="${first!.path}">Show that case</a>`);
    expect((await ada.get(second!.path)).text).not.toContain('Show that case');
  });

  it('cases that this reviewer cannot rule on are passed over, the last leads to the most urgent', async () => {
    const [first, claimed, mine, last] = await fileInOrder('One.', 'Two.', 'Three.', 'Four.');
    await grace.act(`${claimed!.path}/claim`);
    const ref = await refOf(ada);
    await change(site, (tx) =>
      tx('contests').where({ contest_id: mine!.contestId }).update({ filed_by: ref }),
    );
    expect((await resolveCase(ada, last!.path)).headers.location).toBe(first!.path);
    // Only a case of a colleague and one's own are left.
    expect((await resolveCase(ada, first!.path)).headers.location).toBe(first!.path);
  });

  it('with four eyes a proposal opens the next case, and a changed one stays', async () => {
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=true']);
    try {
      const [first, second] = await fileInOrder('One.', 'Two.');
      await expect.poll(async () => (await ada.get(first!.path)).text).toContain('requires two reviewers');
      expect((await resolveCase(ada, first!.path)).headers.location).toBe(second!.path);
      expect((await ada.get(second!.path)).text).toContain(WORDS.caseDone.proposed);
      const better = { text: `${REASON} I looked at the trail again.` };
      expect((await resolveCase(ada, first!.path, better)).headers.location).toBe(first!.path);
    } finally {
      await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=false']);
    }
  });
});

/** Reads the keyed reference of a reviewer from a case that they claim. */
async function refOf(reviewer: Visitor): Promise<string> {
  const { path, contestId } = await createCase(site, 'To be claimed.');
  await reviewer.act(`${path}/claim`);
  const row = (await rows<{ contest_id: string; claimed_by: string }>(site, 'contests')).find(
    (one) => one.contest_id === contestId,
  );
  await change(site, (tx) => tx('contests').where({ contest_id: contestId }).delete());
  return row?.claimed_by ?? '';
}

describe('a refused form', () => {
  it.each([
    ['resolve', { text: 'too short' }, 'reason', 'decide'],
    ['resolve', { outcome: '' }, 'outcome-overturned', 'decide'],
    ['ask', { question: 'short' }, 'question', 'ask'],
    ['extend', { extension: 'Because.', days: '99' }, 'extension', 'extend'],
  ] as const)(
    '%s %j: the error is at %s, whose tab is open and which has the focus',
    async (act, fields, id, tab) => {
      const [, , , calm] = await fileInOrder('One.', 'Two.', 'Three.', 'Four.');
      const typed = { outcome: 'upheld', text: REASON, version: '1', question: '', ...fields };
      const { status, text } = await ada.act(`${calm!.path}/${act}`, typed);
      expect(status).toBe(400);
      expect(text).toContain(`<a href="#${id}">`);
      expect(text).toMatch(new RegExp(`id="${id}"[^>]* autofocus`));
      expect(text).toMatch(new RegExp(`id="tab-${tab}"[^>]* checked`));
      expect([...text.matchAll(/data-tab="\w+" checked/g)]).toHaveLength(1);
      expect(text).toMatch(/class="error"[^>]*role="alert"/);
    },
  );
});
