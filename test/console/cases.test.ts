import { describe, expect, it } from 'vitest';
import { WORDS } from '../../src/console/words.ts';
import { KID, REASON } from '../support/constants.ts';
import { postJson } from '../support/http.ts';
import { desktopChrome } from '../support/samples.ts';
import { started } from '../support/started.ts';
import { createCase, resolveCase, versionOf } from './support/cases.ts';
import { signIn, startConsole } from './support/console.ts';
import { change } from './support/data.ts';

/** Two reviewers and a dpo work on one queue. */

const DONE = WORDS.caseDone;

const site = started(() => startConsole());
const ada = started(() => signIn(site.url, 'ada'));
const grace = started(() => signIn(site.url, 'grace'));
const olaf = started(() => signIn(site.url, 'olaf'));
const newCase = (statement?: string, sub?: string) => createCase(site, statement, sub);

/** Deletes all contests: a test that reads the first page of the queue must begin with an empty queue. */
const emptyQueue = () => change(site, (tx) => tx('contests').delete());

it('the case says that its score is capped where the weights add up to more than 1', async () => {
  const { path } = await newCase();
  expect((await ada.get(path)).text).toMatch(/The weights add up to [1-9]\.\d\d; the highest score is 1\./);
});

it('a contest of a decision that said human: the form and the ruling say that it stays that', async () => {
  await emptyQueue();
  const signals = desktopChrome();
  const decided = await site.decide(undefined, signals);
  expect(decided.class).toBe('human');
  const contestId = await site.contest(decided.requestId, decided.visitorId);
  const path = `/console/contests/${contestId}`;
  const page = (await ada.get(path)).text;
  expect(page).toContain('Agree with the objection.');
  expect(page).toContain('This decision stays “Person” for the site: there is nothing to overturn in it.');
  expect(page).not.toMatch(/no longer counts as|this was a person/);
  expect((await resolveCase(ada, path)).headers.location).toBe(path);
  const after = (await ada.get(path)).text;
  expect(after).toContain(DONE.resolved);
  expect(after).toContain('The objection was right. The decision said “Person”, and it stays that.');
  expect(after).not.toContain('The decision was wrong');
});

describe('claiming', () => {
  it('losing a race names the holder, and the case stays theirs', async () => {
    const { path } = await newCase();
    const [first, second] = await Promise.all([ada.act(`${path}/claim`), grace.act(`${path}/claim`)]);
    const refusedReply = first.status === 303 ? second : first;
    expect([first.status, second.status].sort((a, b) => a - b)).toEqual([303, 409]);
    const holder = first.status === 303 ? 'Ada Lovelace' : 'Grace Hopper';
    expect(refusedReply.text).toContain(`${holder} holds this case until`);
    expect(refusedReply.text).not.toContain('id="reason"');
  });

  it('a claim ends by itself after an hour', async () => {
    const { path, contestId } = await newCase();
    expect((await ada.act(`${path}/claim`)).status).toBe(303);
    await change(site, (tx) =>
      tx('contests').where({ contest_id: contestId }).update({ claimed_until: Date.now() }),
    );
    expect((await grace.act(`${path}/claim`)).status).toBe(303);
    expect((await ada.get(path)).text).toContain('Grace Hopper holds this case until');
  });

  it('the queue is in the order of due dates and names the holder; Waiting for you lists one’s own', async () => {
    await emptyQueue();
    const mine = await newCase('of mine');
    await newCase('of nobody');
    const claimedByGrace = await newCase('of grace');
    await ada.act(`${mine.path}/claim`);
    await grace.act(`${claimedByGrace.path}/claim`);
    const order = ['of mine', 'yours', 'of nobody', 'Claim</button>', 'of grace', '<bdi>Grace Hopper</bdi>'];
    const { text } = await ada.get('/console/queue');
    const rows = text.slice(text.indexOf('<tbody>'));
    const at = order.map((words) => rows.indexOf(words));
    expect(at.every((place) => place !== -1)).toBe(true);
    expect([...at].sort((a, b) => a - b)).toEqual(at);
    const statements = async (query: string) => {
      const page = (await ada.get(`/console/queue?${query}`)).text;
      return ['of mine', 'of nobody', 'of grace'].filter((words) => page.includes(words));
    };
    expect(await statements('list=waiting')).toEqual(['of mine']);
    expect(await statements('q=hopper')).toEqual(['of grace']);
    expect(await statements('q=waiting')).toEqual(['of mine']);
    expect(await statements('q=automated')).toHaveLength(3);
    expect(await statements('q=declared')).toEqual([]);
    // A statement is encrypted, so its words find nothing, and the page says so.
    expect(await statements('q=nobody')).toEqual([]);
    expect(text).toContain('their words cannot be searched');
    const released = await ada.act(`${mine.path}/release`, { from: 'queue' });
    expect(released.headers.location).toBe('/console/queue');
    expect((await grace.act(`${mine.path}/claim`)).status).toBe(303);
  });
});

const AGREED = 'Your statement explains what the rules took for automation, and the other decisions agree: ';

describe('resolving', () => {
  it.each([
    ['too short', { text: 'too short' }, '20 to 4,000 characters'],
    ['control characters', { text: `a reason with a \u0000 in the middle of it` }, '20 to 4,000 characters'],
    ['too long', { text: 'x'.repeat(4001) }, '20 to 4,000 characters'],
    ['no outcome', { outcome: '' }, 'Choose whether'],
    ['an outcome of one’s own', { outcome: 'erase' }, 'Choose whether'],
    ['a template as it is', { text: AGREED }, 'only a beginning'],
    ['a template and a letter', { text: `${AGREED}x` }, 'at least 20 characters of your own'],
    ['a gap that is left', { text: `${AGREED}[…] and much more than twenty characters` }, 'replace […] by'],
    ['two templates', { text: `${AGREED}\n\n${AGREED}and no more` }, 'at least 20 characters of your own'],
  ] as const)('%s: refused, and what was typed is still there', async (_name, fields, words) => {
    const { path } = await newCase();
    const typed = { text: 'A reason that is long enough to be one.', ...fields };
    const reply = await resolveCase(ada, path, typed);
    expect(reply.status).toBe(400);
    expect(reply.text).toContain(words);
    if (typed.text.length < 100) expect(reply.text).toContain(typed.text.trim().slice(0, 9));
    expect((await ada.get(path)).text).toContain('Resolve the case');
  });

  it('a page that is older than the case: refused with the text kept', async () => {
    const { path } = await newCase();
    const version = await versionOf(ada, path);
    await ada.act(`${path}/ask`, { text: 'Which assistive tools do you use?' });
    const reply = await resolveCase(ada, path, { version });
    expect(reply.status).toBe(409);
    expect(reply.text).toContain('changed while you were writing');
    expect(reply.text).toContain(REASON);
    expect((await ada.get(path)).text).toContain('Which assistive tools do you use?');
  });

  it('two at once: the second reads that it is resolved, and keeps their text', async () => {
    const { path } = await newCase();
    const version = await versionOf(ada, path);
    const replies = await Promise.all([
      resolveCase(ada, path, { version }),
      resolveCase(grace, path, { version, outcome: 'upheld', text: 'Several strong signs agree, I think.' }),
    ]);
    expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([303, 409]);
    const refusedReply = replies.find(({ status }) => status === 409)!;
    expect(refusedReply.text).toContain('Someone else has already resolved');
    expect(refusedReply.text).toContain(refusedReply === replies[0] ? REASON : 'Several strong signs agree');
  });

  it('says how the person can be reached, and what they answered', async () => {
    await emptyQueue();
    const account = await ada.get((await newCase()).path);
    expect(account.text).toContain('Through their account');
    expect(account.text).not.toContain('By e-mail');
    const { contestId, caseKey } = await site.fileCase({ statement: 'I.', email: 'anna@example.org' });
    const path = `/console/contests/${contestId}`;
    expect((await ada.get(path)).text).toMatch(
      /With their case key[\s\S]*By e-mail[\s\S]*<code>anna@example\.org</,
    );
    const questions = ['Which assistive tools do you use?', 'Which version of it do you use?'];
    for (const [i, text] of questions.entries()) {
      await ada.act(`${path}/ask`, { text });
      const answer = `Answer <i>${i}</i>`;
      expect((await postJson(site.url, '/case/answer', { caseKey, answer })).status).toBe(200);
    }
    const { text } = await ada.get(path);
    expect(text).toMatch(
      /tools do you use\?[\s\S]*Answer &lt;i&gt;0&lt;[\s\S]*Which version[\s\S]*Answer &lt;i&gt;1&lt;/,
    );
    expect(text).not.toContain('<i>');
    expect((await ada.get('/console/queue')).text).toContain('question answered');
  });

  it('nobody decides their own contest', async () => {
    const { path } = await newCase('mine', 'ada');
    const page = await ada.get(path);
    expect(page.text).toContain('You filed this objection yourself');
    expect(page.text).not.toContain('id="reason"');
    for (const name of ['claim', 'resolve', 'ask']) {
      const reply = await ada.act(`${path}/${name}`, {
        outcome: 'overturned',
        text: REASON,
        version: '1',
      });
      expect(reply.status).toBe(403);
      expect(reply.text).toContain('a colleague has to decide it');
    }
    expect((await grace.act(`${path}/claim`)).status).toBe(303);
  });

  it('four eyes: one proposes, another confirms with a reason of their own, nobody does both, and no reason is lost', async () => {
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=true']);
    try {
      await emptyQueue();
      const { path, contestId } = await newCase();
      await expect.poll(async () => (await ada.get(path)).text).toContain('requires two reviewers');
      expect((await resolveCase(ada, path)).headers.location).toBe(path);
      const waiting = (await ada.get(path)).text;
      expect(waiting).toContain(DONE.proposed);
      expect(waiting).toContain('It is waiting for a second reviewer.');
      expect(waiting).toContain('>Change my proposal</button>');
      expect(waiting).not.toMatch(/>(?:Resolve the case|Propose this ruling|Claim this case)<\/button>/);
      expect(waiting).toMatch(new RegExp(`id="reason"[^>]*>${REASON}<`));
      expect((await ada.get('/console/queue')).text).toContain('proposed by you');
      // A second ruling by the same person is still a proposal, and the page says so.
      expect((await resolveCase(ada, path)).headers.location).toBe(path);
      expect((await ada.get(path)).text).toContain(DONE.unchanged);
      const better = 'The trail shows a person who reads slowly, pays, and returns.';
      expect((await resolveCase(ada, path, { text: better })).headers.location).toBe(path);
      expect((await ada.get(path)).text).toContain(DONE.changed);

      const second = (await grace.get(path)).text;
      expect(second).toContain('Ada Lovelace proposes: Overturned');
      expect(second).toContain('name="outcome" value="overturned">Confirm: Overturned</button>');
      expect(second).toContain('name="outcome" value="upheld">Propose instead: Upheld</button>');
      expect(second).toMatch(/id="reason"[^>]*><\/textarea>/);
      for (const outcome of ['upheld', 'overturned'])
        for (const text of [better, `${better} I agree.`]) {
          const copied = await resolveCase(grace, path, { text, outcome });
          expect(copied.status).toBe(400);
          expect(copied.text).toContain('This is your colleague’s reason.');
        }
      const ownReason = 'I saw the same trail, and a payment that fits it.';
      expect((await resolveCase(grace, path, { text: ownReason })).headers.location).toBe(path);

      const { text } = await ada.get(path);
      for (const words of [ownReason, better, 'Grace Hopper']) expect(text).toContain(words);
      expect((await ada.get('/console/queue?state=resolved')).text).toContain('<bdi>Grace Hopper</bdi>');
      // The API shows a resolved contest without a proposal, and names nobody.
      const shownCase = await site.gpd.json(['contests', 'show', contestId]);
      expect(shownCase).toMatchObject({ reason: ownReason, proposed: null });
      expect(JSON.stringify(shownCase)).not.toMatch(/Ada|Grace/);
    } finally {
      await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=false']);
    }
  });
});

describe('another tenant', () => {
  it('its contests are 404, in every way to reach them', async () => {
    const { path, requestId, contestId } = await newCase('a secret of acme');
    expect((await olaf.get(path)).status).toBe(404);
    for (const name of ['claim', 'release', 'ask', 'extend', 'resolve']) {
      const fields = { outcome: 'upheld', text: REASON, version: '1' };
      expect((await olaf.act(`${path}/${name}`, fields)).status).toBe(404);
    }
    const queue = (await olaf.get('/console/queue')).text;
    expect(queue).not.toContain('a secret of acme');
    for (const id of [requestId, contestId]) {
      const found = await olaf.get(`/console/queue?q=${id}`);
      expect(found.status).toBe(200);
      expect(found.text).toContain('This tenant has no objection with that id');
    }
  });
});

describe('filters and paging', () => {
  it('age, due date, class and state narrow it, an id finds its case; junk is passed over', async () => {
    await emptyQueue();
    const old = await newCase('an old one');
    const newer = await newCase('a fresh one');
    const day = 86_400_000;
    await change(site, (tx) =>
      tx('contests')
        .where({ contest_id: old.contestId })
        .update({ filed_at: Date.now() - 29 * day, due_at: Date.now() + day }),
    );
    const has = async (query: string) => {
      const { text, status } = await ada.get(`/console/queue?${query}`);
      expect(status).toBe(200);
      return [text.includes('an old one'), text.includes('a fresh one')];
    };
    expect(await has('age=28')).toEqual([true, false]);
    expect(await has('due=2')).toEqual([true, false]);
    expect(await has('due=week')).toEqual([true, false]);
    expect(await has('due=late')).toEqual([false, false]);
    expect(await has('q=overdue')).toEqual([false, false]);
    expect(await has('class=unknown')).toEqual([false, false]);
    expect(await has('class=undeclared_automation&state=open')).toEqual([true, true]);
    expect(await has('state=resolved')).toEqual([false, false]);
    expect(
      await has('age=9e9&due=%27&class=<b>&after=free~x~y&before=1~y&list=all&sort=x&state=all'),
    ).toEqual([true, true]);
    for (const id of [old.requestId, old.contestId, ` ${old.requestId} `]) {
      const found = await ada.get(`/console/queue?q=${encodeURIComponent(id)}`);
      expect(found.headers.location).toBe(old.path);
    }
    for (const { path } of [old, newer]) expect((await resolveCase(ada, path)).status).toBe(303);
    expect(await has('state=resolved')).toEqual([true, true]);
    expect(await has('state=resolved&age=28')).toEqual([true, false]);
    expect(await has('state=resolved&due=2')).toEqual([true, false]);
  });

  it('pages by key in both directions: every contest once, each page says which rows it shows', async () => {
    await emptyQueue();
    const createdCases = await Promise.all(
      Array.from({ length: 52 }, (_, i) => newCase(`number ${i} of many`)),
    );
    const idsOf = (text: string) =>
      [...text.matchAll(/data-open href="\/console\/contests\/(con_\w{26})"/g)].map(([, id]) => id!);
    const walk = async (from: string, rel: string) => {
      const pages: { ids: readonly string[]; range: string | undefined; path: string }[] = [];
      for (let path: string | undefined = from; path; ) {
        const { text } = await ada.get(path);
        pages.push({ ids: idsOf(text), range: /\d+–\d+ of \d+/.exec(text)?.[0], path });
        path = new RegExp(`<a href="([^"]+)" rel="${rel}"`).exec(text)?.[1]?.replaceAll('&amp;', '&');
      }
      return pages;
    };
    const forward = await walk('/console/queue?sort=oldest', 'next');
    expect(forward.map(({ range }) => range)).toEqual(['1–25 of 52', '26–50 of 52', '51–52 of 52']);
    const ids = forward.flatMap((page) => page.ids);
    expect(ids.length).toBe(52);
    expect([...ids].sort()).toEqual(createdCases.map(({ contestId }) => contestId).sort());
    const backward = await walk(forward.at(-1)!.path, 'prev');
    expect(backward.map(({ range }) => range)).toEqual(['51–52 of 52', '26–50 of 52', '1–25 of 52']);
    expect(backward.toReversed().flatMap((page) => page.ids)).toEqual(ids);
  });
});
