import { join } from 'node:path';
import { promisify } from 'node:util';
import sqlite3 from 'sqlite3';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { toldOnce } from '../../../src/ingest/verdict/classify.ts';
import { KID, ORIGIN, REASON } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { desktopChrome } from '../../support/samples.ts';
import { startGpd } from '../../support/server.ts';
import { started } from '../../support/started.ts';
import { startRights, type Visit } from '../support/rights.ts';

const rights = started(() => startRights());
beforeAll(async () => {
  await rights.gpd.json(['tenants', 'set', KID, 'notice.contact=privacy@shop.example']);
  await vi.waitFor(async () => {
    expect((await form(await rights.visit())).text).toContain('privacy@shop.example');
  }, SEEN_WITHIN);
});

const HTML = 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8';

/** A browser without JavaScript sends this form. */
function form(visit: Visit, fields: Readonly<Record<string, string>> = {}, headers = {}): Promise<Reply> {
  return ask(rights.gpd.url, '/my-data', {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      accept: HTML,
      origin: ORIGIN,
      cookie: `gp_session=${visit.session}`,
      ...headers,
    },
    body: new URLSearchParams({ token: visit.token, ...fields }).toString(),
  });
}

const textOf = ({ text }: Reply): string =>
  text
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .replaceAll('&#39;', "'");

/** Files a contest by an account. */
async function contest({ requestId, visitorId }: Visit): Promise<string> {
  const subject = await rights.as({ gpd_role: 'subject', gpd_visitor: visitorId });
  const filed = await rights.call('/privacy/contest', { requestId }, subject);
  return (filed.json() as { contestId: string }).contestId;
}

async function overturn(contestId: string): Promise<void> {
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
  await rights.call(
    '/privacy/contest/resolve',
    { contestId, outcome: 'overturned', reason: REASON },
    reviewer,
  );
}

describe('what a token reaches, without JavaScript', () => {
  it('all decisions of the device with their reasons, the contact, and how long', async () => {
    const device = '3c'.repeat(16);
    const first = await rights.visit({ device, bot: true });
    const visit = await rights.visit({ device, bot: true });
    const reply = await form(visit);
    expect({ status: reply.status, type: reply.headers['content-type'] }).toEqual({
      status: 200,
      type: 'text/html; charset=utf-8',
    });
    expect(reply.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'same-origin' });
    const text = textOf(reply);
    for (const part of [first.requestId, visit.requestId, 'privacy@shop.example', '90 days'])
      expect(text).toContain(part);
    expect(text).toMatch(/The 2 decisions about this device/);
    expect(text).toMatch(/A1 · 0\.90/);
    expect(text).toMatch(/Score: 1 out of 1 \(the highest\)/);
    // Its loss is named before it happens.
    expect(text).toMatch(/This erases all 2 decisions above .* cannot be undone/);
    // Looking made no further decision.
    const [countBefore] = await rights.sql('SELECT COUNT(*) AS n FROM decisions');
    await form(visit);
    expect(await rights.sql('SELECT COUNT(*) AS n FROM decisions')).toEqual([countBefore]);
  });

  it('one look at a time per client, as an export, and only a saved page counts as one in the audit log', async () => {
    const visit = await rights.visit();
    const exports = () => rights.sql("SELECT COUNT(*) AS n FROM audit_log WHERE action = 'dsar.exported'");
    const [before] = await exports();
    const replies = await Promise.all(Array.from({ length: 20 }, () => form(visit)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 429]));
    const refused = replies.find(({ status }) => status === 429);
    expect(refused?.headers['retry-after']).toBe('10');
    expect(await exports()).toEqual([before]);
    expect((await form(visit, { action: 'page' })).status).toBe(200);
    expect(await exports()).toEqual([{ n: Number(before?.['n']) + 1 }]);
  });

  it('as a file for a program and one for a person, which has no form and loads nothing', async () => {
    const visit = await rights.visit();
    const json = await form(visit, { action: 'export' });
    expect(json.headers['content-disposition']).toBe('attachment; filename=my-data.json');
    expect(json.json()).toMatchObject({ decisions: [{ requestId: visit.requestId }] });
    const page = await form(visit, { action: 'page' });
    expect(page.headers['content-disposition']).toBe('attachment; filename=my-data.html');
    expect(page.text).toContain(visit.requestId);
    expect(page.text).not.toMatch(/<script|<form|<link|src=/);
    expect(page.text).not.toContain(visit.token);
  });

  it('forgets, with a receipt and the reason for what is kept', async () => {
    const visit = await rights.visit({ bot: true });
    await contest(visit);
    const text = textOf(await form(visit, { action: 'forget' }));
    const [receipt] = await rights.sql('SELECT receipt_id FROM erasures ORDER BY erased_at DESC LIMIT 1');
    expect(text).toContain(receipt?.['receipt_id']);
    // The contested decision is kept, so no sentence may say that the decisions are gone.
    expect(text).toContain('Not all of it was erased. The list below says what is kept and why.');
    expect(text).not.toMatch(/decisions and the hash of this device were erased/);
    expect(text).toMatch(/objections kept \(1\)\s+GDPR Art\. 17\(3\)\(e\)/);
    expect(text).toContain('privacy@shop.example');
  });

  it('the limit of cases per network is told with an address and a number, and a text that is too long by its limit', async () => {
    const objection = { action: 'contest', statement: 'I am a person.' };
    for (let i = 0; i < 3; i += 1)
      await rights.me(await rights.visit({ bot: true }), 'contest', { body: { statement: 'A person.' } });
    const visit = await rights.visit({ bot: true });
    const refused = await form(visit, objection);
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true]);
    const text = textOf(refused);
    expect(text).toContain('Several objections came from your network today, so this one was not filed.');
    expect(text).toContain(`Write to privacy@shop.example, and give the number ${visit.requestId}.`);
    const refusedLength = await form(visit, { ...objection, statement: 'x'.repeat(4001) });
    expect(refusedLength.status).toBe(400);
    expect(textOf(refusedLength)).toContain('the text is too long: at most 4,000 characters');
    await rights.sql('UPDATE contests SET case_network = NULL');
  });

  it('a legal hold: nothing can be erased, the button records the request, and nothing says erased', async () => {
    const visit = await rights.visit();
    const [row] = await rights.sql(`SELECT durable FROM decisions WHERE request_id = '${visit.requestId}'`);
    await rights.sql(
      `INSERT INTO legal_holds (kid, durable, basis, created_at) VALUES ('${KID}', '${String(row?.['durable'])}', 'Proceedings 12/26', 1)`,
    );
    const shown = textOf(await form(visit));
    expect(shown).toContain('nothing can be erased now');
    expect(shown).toContain('Record my request');
    expect(shown).not.toMatch(/This erases|Erase it now|cannot be undone/);
    const text = textOf(await form(visit, { action: 'forget' }));
    expect(text).toContain('Nothing was erased. The list below says what is kept and why.');
    expect(text).toMatch(/decisions kept \(1\)\s+Proceedings 12\/26/);
    expect(text).not.toMatch(/What was erased|Forgotten/);
  });

  it('says that it is being erased while a part of it waits', async () => {
    const visit = await rights.visit();
    const reader = new sqlite3.Database(join(rights.gpd.dataDir, 'gpd.db'));
    // A reader keeps the write-ahead log open, and the log still contains bytes of the device.
    for (const sql of ['BEGIN', 'SELECT count(*) FROM decisions'])
      await promisify<string, unknown>(reader.all.bind(reader))(sql);
    const text = textOf(await form(visit, { action: 'forget' }));
    await promisify(reader.close.bind(reader))();
    expect(text).toContain('Forgotten: the decisions about this device and its hash are being erased.');
  });

  it('says that only one visit was erased where the id may be other people’s', async () => {
    const signals = desktopChrome('4d'.repeat(16));
    Object.assign(signals['graphics'] as object, { renderer: 'Google SwiftShader' });
    await rights.visit({ signals });
    const visit = await rights.visit({ signals });
    const shown = textOf(await form(visit));
    expect(shown).toMatch(/its id may be shared with other people/);
    expect(shown).toMatch(/Other visits of this device stay/);
    const text = textOf(await form(visit, { action: 'forget' }));
    expect(text).toMatch(/Only this visit was erased\. Similar devices share an id/);
    expect(text).toMatch(/To have the rest erased, write to the contact below and quote the receipt/);
    expect(text).not.toMatch(/hash of this device were erased/);
    // Again: the same receipt, and the same words.
    const again = textOf(await form(visit, { action: 'forget' }));
    expect(again.match(/era_\w+/)?.[0]).toBe(text.match(/era_\w+/)?.[0]);
    expect(again).toMatch(/Only this visit was erased/);
  });

  it('says that a reviewer decided and when, and offers no contest of that', async () => {
    const device = '5e'.repeat(16);
    const contested = await rights.visit({ device, bot: true });
    expect(textOf(await form(contested))).toMatch(/This is wrong – ask a person/);
    const contestId = await contest(contested);
    const open = textOf(await form(contested));
    expect(open).toMatch(/You asked for a review\. We will answer by \d+ \w+ \d{4}/);
    expect(open).not.toMatch(/ask a person/);
    await overturn(contestId);
    const next = await rights.visit({ device, bot: true });
    for (const visit of [next, contested]) {
      const text = textOf(await form(visit));
      expect(text).toMatch(
        /A reviewer confirmed on \d+ \w+ \d{4} at [\d:]+ UTC that a person uses this device/,
      );
      expect(text).toMatch(/Signs that do not count/);
      expect(text).toContain(REASON);
      expect(text).toContain(
        visit === next ? 'Score: 0.20 out of 1, because of the review.' : 'The review overturned it',
      );
      expect(text).not.toMatch(/ask a person/);
    }
  });

  it('hides the time and the author of somebody else’s review on a shared id', async () => {
    const signals = desktopChrome('6f'.repeat(16));
    Object.assign(signals, { tells: { webdriver: true } });
    Object.assign(signals['graphics'] as object, { renderer: 'Google SwiftShader' });
    const contested = await rights.visit({ signals });
    expect(contested.answer).toMatchObject({ needsAttestation: true });
    await overturn(await contest(contested));
    const stranger = await rights.visit({ signals });
    const text = textOf(await form(stranger));
    expect(text).toMatch(/Devices that look like this one were reviewed\. They count as a person’s\./);
    expect(text).not.toMatch(/A reviewer confirmed|a person uses this device|ask a person/);
    expect(text).not.toContain(REASON);
    const exported = (await rights.me(stranger, 'export')).json();
    expect(exported).toMatchObject({ override: null, contests: [], decisions: [{ overridden: true }] });
    // The one whose case it was reads when, and why.
    const theirs = textOf(await form(contested));
    expect(theirs).toMatch(/A reviewer confirmed on \d+ \w+ \d{4}/);
    expect(theirs).toContain(REASON);
  });

  it('says that a reviewed human decision stays, and that nothing was overturned', async () => {
    const visit = await rights.visit();
    const contestId = await contest(visit);
    // Named before an erasure, which keeps it.
    expect(textOf(await form(visit))).toMatch(
      /You have asked for a review that is not answered yet\..*case number con_\w+ \)\. The case and the decision that it is about are kept/,
    );
    await overturn(contestId);
    const text = textOf(await form(visit));
    expect(text).toMatch(/A reviewer agreed with you on .*The decision was “A person”, and it stays that/);
    expect(text).not.toMatch(/overturned/i);
  });

  it('files a contest in the person’s own words, and shows the case key once', async () => {
    const visit = await rights.visit({ bot: true });
    const shown = await form(visit);
    expect(shown.text.match(/name="statement"/g)).toHaveLength(1);
    const statement = 'I use a screen reader <b>and</b> a keyboard.';
    const fields = { action: 'contest', statement, email: '' };
    expect((await form(visit, { ...fields, statement: '' })).status).toBe(400);
    const filed = await form(visit, fields);
    const [, key = ''] = /data-copy="([0-9A-Z-]{31})"/.exec(filed.text) ?? [];
    expect(filed.text).toContain(`href="/case#${key}"`);
    expect(textOf(filed)).toMatch(/We will answer by \d+ \w+ \d{4}/);
    const caseReply = await rights.call('/case', { caseKey: key });
    expect(caseReply.json()).toMatchObject({ status: 'open', statement });
    const again = await form(visit, fields);
    expect(again.text).not.toContain(key);
    expect(textOf(again)).toMatch(/cannot be shown again/);
    expect(textOf(again)).toContain('Nothing new was filed');
    const after = await form(visit);
    expect(after.text).toContain('I use a screen reader &lt;b&gt;and&lt;/b&gt; a keyboard.');
    expect(after.text).not.toContain('name="statement"');
  });

  it('tells nothing to another browser, another site or a guess, and says so as a page', async () => {
    const visit = await rights.visit();
    for (const reply of [
      await form(visit, {}, { origin: 'https://evil.example' }),
      await form(visit, { action: 'forget' }, { cookie: '' }),
    ]) {
      expect(reply.status).toBe(401);
      expect(reply.headers['content-type']).toBe('text/html; charset=utf-8');
      expect(textOf(reply)).toMatch(/Nothing was changed\. This page was open for too long/);
      expect(reply.text).not.toContain(visit.requestId);
    }
    expect(await rights.sql(`SELECT 1 FROM decisions WHERE request_id = '${visit.requestId}'`)).toHaveLength(
      1,
    );
  });
});

describe('addresses', () => {
  it('without a kid show the only tenant, or the tenants of this host and no other', async () => {
    const one = await startGpd({ tenants: [{ kid: 'alone', origins: [ORIGIN] }] });
    try {
      expect((await ask(one.url, '/my-data')).text).toContain('data-kid="alone"');
      const text = textOf(await ask(one.url, '/my-data?kid=nobody', { headers: { accept: HTML } }));
      expect(text).toMatch(/No site here has that name.*One site uses this address/s);
      expect(text).not.toContain('More than one');
    } finally {
      await one.stop();
    }
    const { host } = new URL(ORIGIN);
    const choice = await ask(rights.gpd.url, '/my-data', { headers: { accept: HTML, host } });
    expect(choice.status).toBe(200);
    expect(choice.text.match(/href="\/my-data\?kid=[^"]+"/g)).toHaveLength(2);
    const stranger = await ask(rights.gpd.url, '/my-data', { headers: { accept: HTML } });
    expect(stranger.status).toBe(200);
    expect(stranger.text).not.toContain(KID);
    expectError(await ask(rights.gpd.url, '/my-data'), 'missing-kid');
    const second = await ask(rights.gpd.url, '/my-data', { headers: { host: 'second.example' } });
    expect(second.text).toContain(`data-kid="${KID}"`);
  });

  it('loads the banner by a publishable key, and by nothing else', async () => {
    const key = `gpd_pk_${'a'.repeat(43)}`;
    const path = `/my-data?kid=${KID}&key=`;
    expect((await ask(rights.gpd.url, path + key)).text).toContain(`data-key="${key}"`);
    for (const bad of [`gpd_sk_${'a'.repeat(43)}`, `${key}x`, '%22%3E%3Cscript%3E'])
      expect((await ask(rights.gpd.url, path + bad)).text).not.toContain('embed.js');
  });

  it('a browser gets a page, a program JSON', async () => {
    const page = await ask(rights.gpd.url, '/nowhere', { headers: { accept: HTML } });
    expect(page.status).toBe(404);
    expect(textOf(page)).toMatch(/There is no page at this address/);
    for (const accept of ['*/*', 'application/json'])
      expectError(await ask(rights.gpd.url, '/nowhere', { headers: { accept } }), 'not-found');
    expectError(await ask(rights.gpd.url, '/nowhere'), 'not-found');
    const unknown = await ask(rights.gpd.url, '/my-data?kid=nobody', { headers: { accept: HTML } });
    expect(unknown.status).toBe(404);
    expect(textOf(unknown)).toMatch(/No site here has that name/);
  });
});

it('rules that state one fact appear once, as the rule that counted', () => {
  const all = Object.entries({ A1: 0.9, M7: 0.1, W5: 0, W6: 0 }).map(([id, weight]) => ({ id, weight }));
  expect(toldOnce(all).map(({ id }) => id)).toEqual(['A1', 'M7', 'W6']);
  expect(toldOnce([{ id: 'W5', weight: 0 }])).toHaveLength(1);
});
