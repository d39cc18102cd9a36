import { describe, expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { desktopChrome } from '../support/samples.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change, rows } from './support/data.ts';

/** The list of decisions and the page of one. */

const site = started(() => startConsole());
const ada = started(() => signIn(site.url, 'ada'));
const dora = started(() => signIn(site.url, 'dora'));
const olaf = started(() => signIn(site.url, 'olaf'));

const listed = (text: string): string[] =>
  [...text.matchAll(/href="\/console\/decisions\/(req_\w+)"/g)].map(([, id]) => id ?? '');
const link = (text: string, rel: string): string =>
  (new RegExp(`href="([^"]+)" rel="${rel}"`).exec(text)?.[1] ?? '').replaceAll('&amp;', '&');

describe('the list of decisions', () => {
  it('is filtered by class, rule, agent, policy and day, and says what to do if nothing matches', async () => {
    const bot = await site.decide('bot');
    const person = await site.decide('person', desktopChrome('person'));
    const today = new Date().toISOString().slice(0, 10);
    const [first] = await rows<{ verdict: string }>(site, 'decisions');
    const { policyVersion } = JSON.parse(first?.verdict ?? '') as { policyVersion: string };
    for (const query of [
      '',
      '?class=x',
      '?from=yesterday',
      `?from=${today}&to=${today}`,
      `?policy=${policyVersion}`,
    ])
      expect(new Set(listed((await ada.get(`/console/decisions${query}`)).text))).toEqual(
        new Set([bot.requestId, person.requestId]),
      );
    for (const query of [`?class=${bot.class}`, '?rule=A1'])
      expect(listed((await ada.get(`/console/decisions${query}`)).text)).toEqual([bot.requestId]);
    expect(person.class).not.toBe(bot.class);
    for (const query of ['?agent=https%3A%2F%2Fx.example', '?to=2001-01-01', '?policy=none&class=human'])
      expect((await ada.get(`/console/decisions${query}`)).text).toContain('No decision matches.');
    for (const junk of [
      'after=x',
      'after=9~req_',
      'before=%27',
      'after=1&after=2',
      'rule=%3Cscript%3E',
      'from=2026-99-99',
    ])
      expect((await ada.get(`/console/decisions?${junk}`)).status).toBe(200);
    const shown = (await ada.get('/console/decisions')).text;
    for (const one of [bot, person]) expect(shown).not.toContain(one.visitorId);
  });

  it('pages forward and back', async () => {
    for (let i = 0; i < 30; i += 1) await site.decide(`many-${i}`);
    const first = (await dora.get('/console/decisions')).text;
    expect(listed(first)).toHaveLength(25);
    expect(link(first, 'prev')).toBe('');
    const second = (await dora.get(link(first, 'next'))).text;
    expect(listed(second).length).toBeGreaterThanOrEqual(5);
    expect(listed(first)).not.toEqual(expect.arrayContaining(listed(second)));
    expect(listed((await dora.get(link(second, 'prev'))).text)).toEqual(listed(first));
  });

  it('shows one decision, and its reading is in the audit log before the page is', async () => {
    const { requestId, visitorId } = await site.decide('read');
    const contestId = await site.contest(requestId, visitorId);
    const count = async () =>
      (await rows(site, 'audit_log')).filter(({ action }) => action === 'decision.read').length;
    const before = await count();
    const page = await ada.get(`/console/decisions/${requestId}`);
    expect(page.status).toBe(200);
    expect(page.text).toContain('What the machine saw');
    expect(page.text).toContain(`/console/contests/${contestId}`);
    expect(await count()).toBe(before + 1);
    const log = (await rows(site, 'audit_log')).filter(({ action }) => action === 'decision.read');
    expect(log.at(-1)).toMatchObject({ kid: KID, role: 'reviewer', detail: '{}' });
    expect(JSON.stringify(log)).not.toContain(requestId);
    expect((await dora.get('/console/audit?action=decision.read')).text).toContain('Decision read</td>');
    // The list alone leaves no row.
    await ada.get('/console/decisions');
    expect(await count()).toBe(before + 1);
    await change(site, (tx) => tx('contests').where({ contest_id: contestId }).delete());
  });

  it('another tenant sees nothing of it, and its id looks like none', async () => {
    const { requestId } = await site.decide('theirs');
    expect(listed((await olaf.get('/console/decisions')).text)).toEqual([]);
    const replies = await Promise.all([
      olaf.get(`/console/decisions/${requestId}`),
      olaf.get('/console/decisions/req_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
      olaf.get('/console/decisions/x'),
    ]);
    const bodies = replies.map(({ text }) => text.replaceAll(/nonce="[^"]*"|req_\w+/g, ''));
    expect(replies.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect(new Set(bodies).size).toBe(1);
    const log = (await rows(site, 'audit_log')).filter(({ kid }) => kid !== KID);
    expect(log.some(({ action }) => action === 'decision.read')).toBe(false);
  });
});
