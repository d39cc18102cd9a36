import { describe, expect, it } from 'vitest';
import { WORDS } from '../../src/console/words.ts';
import { started } from '../support/started.ts';
import { createCase, resolveCase, versionOf } from './support/cases.ts';
import { signIn, startConsole } from './support/console.ts';
import { change, idle, rows } from './support/data.ts';

/** Nothing that staff type into a case is lost: not by a refusal, by another button, or by the end of their session. */

const site = started(() => startConsole());
const ada = started(() => signIn(site.url, 'ada'));
const newCase = () => createCase(site);

describe('what is typed', () => {
  const HALF = 'Half a thought about this case';
  const QUESTION = 'Half a question';
  const TEMPLATE = 'nothing in the statement explains them: ';

  const reasonOf = (text: string): string => /id="reason"[^>]*>([^<]*)</.exec(text)?.[1] ?? '';
  const questionOf = (text: string): string => /id="question"[^>]*>([^<]*)</.exec(text)?.[1] ?? '';

  /** Presses a button of the form on the page. */
  const press = async (path: string, name: string, fields: Record<string, string> = {}) =>
    ada.act(`${path}/${name}`, {
      version: await versionOf(ada, path),
      text: HALF,
      question: QUESTION,
      ...fields,
    });

  it('a refused form has no address that is not opened like that, and what was typed is there on every way on', async () => {
    const { path } = await newCase();
    const refused = await press(path, 'resolve', { outcome: 'upheld', text: 'too short' });
    expect(refused.status).toBe(400);
    expect([reasonOf(refused.text), questionOf(refused.text)]).toEqual(['too short', QUESTION]);
    const links = [...refused.text.matchAll(/ href="([^#"][^"]*)"/g)].map(([, href]) => href!);
    for (const href of links) {
      const { pathname, search } = new URL(href, `${site.url}${path}/resolve`);
      expect([href, (await ada.get(pathname + search)).status]).not.toEqual([href, 405]);
    }
    const again = (await ada.get(path)).text;
    expect([reasonOf(again), questionOf(again)]).toEqual(['too short', QUESTION]);
    expect(again).toMatch(/value="upheld" id="outcome-upheld" required checked/);
  });

  it('a template goes below it; one that nobody went on from makes room for another', async () => {
    const { path } = await newCase();
    const started = await press(path, 'template', { template: 'driven', outcome: 'overturned' });
    expect(started.headers.location).toBe(`${path}#resolve`);
    const page = (await ada.get(path)).text;
    expect(page).toContain(WORDS.caseDone.started);
    expect(reasonOf(page)).toMatch(new RegExp(`^${HALF}\n\nSeveral strong signs[^]*${TEMPLATE}\\[…\\]$`));
    expect(questionOf(page)).toBe(QUESTION);
    expect(page).toMatch(/value="overturned" id="outcome-overturned" required checked/);
    await press(path, 'template', { template: 'tool', text: reasonOf(page) });
    const other = reasonOf((await ada.get(path)).text);
    expect(other).toMatch(new RegExp(`^${HALF}\n\nThe sign that weighed most`));
    expect(other).not.toContain('Several strong signs');
    // A template chooses no ruling: that is the reviewer's.
    const { path: otherCase } = await newCase();
    for (const id of ['shared', 'tool', 'agreed', 'driven']) {
      await press(otherCase, 'template', { template: id });
      expect((await ada.get(otherCase)).text).not.toMatch(/name="outcome"[^>]* checked/);
      expect((await ada.get(`${otherCase}?template=${id}`)).text).not.toMatch(/name="outcome"[^>]* checked/);
    }
    // A template can also be chosen in the address, which keeps the draft.
    const linked = reasonOf((await ada.get(`${path}?template=agreed`)).text);
    expect(linked).toMatch(new RegExp(`^${HALF}\n\nYour statement explains`));
  });

  it.each(['claim', 'release', 'ask'])('%s keeps the half-written reason', async (name) => {
    const { path } = await newCase();
    await press(path, 'claim');
    const reply = await press(path, name, name === 'ask' ? { question: 'Which tools do you use here?' } : {});
    expect(reply.status).toBe(303);
    const page = (await ada.get(path)).text;
    expect([reasonOf(page), questionOf(page)]).toEqual([HALF, name === 'ask' ? '' : QUESTION]);
    // A cleared text does not come back.
    await press(path, 'claim', { text: '', question: '' });
    const cleared = (await ada.get(path)).text;
    expect([reasonOf(cleared), questionOf(cleared)]).toEqual(['', '']);
  });

  it('extends once, and an extension that is refused keeps every word', async () => {
    const { path, contestId } = await newCase();
    const extension = 'An expert of the vendor has to look.';
    expect((await ada.get(path)).text).toContain('Once, by up to 61 days (GDPR, article 12(3))');
    const refused = await press(path, 'extend', { extension, days: '62' });
    expect(refused.status).toBe(400);
    for (const words of [extension, HALF, QUESTION, 'An extension needs a number of days'])
      expect(refused.text).toContain(words);
    const reply = await press(path, 'extend', { extension, days: '61' });
    expect(reply.headers.location).toBe(path);
    expect((await ada.get(path)).text).toContain(WORDS.caseDone.extended);
    const page = (await ada.get(path)).text;
    expect(page).toMatch(/due in 9[012] days/);
    expect(page).toContain(extension);
    expect(page).not.toContain('name="days"');
    expect([reasonOf(page), questionOf(page)]).toEqual([HALF, QUESTION]);
    expect((await press(path, 'extend', { extension, days: '5' })).status).toBe(400);
    const shown = await site.gpd.json(['contests', 'show', contestId]);
    expect(shown).toMatchObject({ extensionReason: extension });
  });

  it('is sealed where it is kept, and goes with the ruling', async () => {
    const { path, contestId } = await newCase();
    await press(path, 'claim');
    const drafts = async () =>
      (await rows(site, 'console_drafts')).filter((row) => row['contest_id'] === contestId);
    expect(await drafts()).toHaveLength(2);
    expect(JSON.stringify(await drafts())).not.toContain('Half a');
    expect((await resolveCase(ada, path)).status).toBe(303);
    expect(await drafts()).toEqual([]);
  });
});

describe('an expired session', () => {
  it('keeps what was written, and it stands in the form after the next sign-in', async () => {
    const { path } = await newCase();
    const visitor = await signIn(site.url, 'grace');
    await visitor.act('/console/help');
    const version = await versionOf(visitor, path);
    await idle(site, 'Grace Hopper');
    const text = 'A long thought about a device that many people share.';
    const reply = await visitor.act(`${path}/resolve`, { outcome: 'upheld', text, version });
    expect(reply.status).toBe(401);
    expect(reply.text).toContain('Your text was kept');
    expect(reply.text).toContain(`/console/login?back=${encodeURIComponent(path)}`);
    const question = 'Which of the tools that you name runs all the time?';
    expect((await visitor.act(`${path}/ask`, { text: question })).status).toBe(401);
    const grace = await signIn(site.url, 'grace', path);
    const page = (await grace.get(path)).text;
    for (const words of [text, question]) expect(page).toContain(words);
    expect(page).toMatch(/value="upheld" id="outcome-upheld" required checked/);
    // A colleague does not see the draft.
    expect((await ada.get(path)).text).not.toContain(text);
  });

  it('without the old token nothing is kept, and the text is on the page', async () => {
    const { path } = await newCase();
    const visitor = await signIn(site.url, 'grace');
    await idle(site, 'Grace Hopper');
    const text = 'Planted by somebody else, from another page.';
    const reply = await visitor.post(`${path}/resolve`, {
      csrf: 'guessed',
      outcome: 'upheld',
      text,
      version: '1',
    });
    expect(reply.status).toBe(401);
    expect(reply.text).toContain('Copy your text');
    expect(reply.text).toContain(text);
    const grace = await signIn(site.url, 'grace');
    expect((await grace.get(path)).text).not.toContain(text);
  });

  it('after eight hours it ends, however busy', async () => {
    const visitor = await signIn(site.url, 'grace');
    expect((await visitor.get('/console/queue')).status).toBe(200);
    await change(site, (tx) =>
      tx('console_sessions')
        .where({ label: 'Grace Hopper' })
        .update({ expires_at: Date.now() - 1, seen_at: Date.now() }),
    );
    expect((await visitor.get('/console/queue')).status).toBe(303);
  });
});
