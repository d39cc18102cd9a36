import { describe, expect, it, vi } from 'vitest';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole } from './support/console.ts';
import { change } from './support/data.ts';

/** Pages for a data-protection officer: the audit log, the register, the ledger, keys and the overview. */

const site = started(() => startConsole());
const dora = started(() => signIn(site.url, 'dora'));
const olaf = started(() => signIn(site.url, 'olaf'));

const handleOf = (text: string): string =>
  /<code>([0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4})<\/code>/.exec(text)?.[1] ?? '';

describe('the audit log', () => {
  it('filters, pages, and is exported as a CSV that no spreadsheet runs', async () => {
    const key = { kind: 'request', id: (await site.decide()).requestId };
    const confirm = handleOf((await dora.act('/console/subjects/plan', key)).text);
    expect((await dora.act('/console/subjects/erase', { ...key, confirm })).status).toBe(303);
    const { text } = await dora.get('/console/audit?action=subject.erased&role=dpo');
    expect(text).toContain('Erasure of a subject');
    expect(text).not.toContain('Signed in</td>');
    const junk = 'action=x&role=%00&from=yesterday&to=2026-99-99&actor=%3Cb%3E&before=-1';
    expect((await dora.get(`/console/audit?${junk}`)).status).toBe(200);
    expect((await dora.get('/console/audit?to=2001-01-01')).text).toContain('No row matches');
    const today = new Date().toISOString().slice(0, 10);
    expect((await dora.get(`/console/audit?from=${today}&to=${today}`)).text).toContain('Signed in</td>');
    const csv = await dora.act('/console/audit/export', { action: 'subject.erased' });
    expect(csv.headers['content-type']).toMatch(/^text\/csv/);
    const [head, ...lines] = csv.text.trim().split('\r\n');
    expect(head).toBe('seq,at,role,actor,action,object,detail');
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^\d+,[\dTZ:.-]+,\w+,'?[\w-]{43},subject\.erased,/);
    expect((await dora.get('/console/audit?action=audit.exported')).text).toContain('Audit log exported');
    expect((await olaf.get('/console/audit')).text).not.toContain('Subject erased</td>');
  });

  it('shows what an operator set, and can be narrowed to it; another tenant does not see it', async () => {
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=true']);
    await site.gpd.json(['tenants', 'set', KID, 'review.fourEyes=false']);
    const { text } = await dora.get('/console/audit?action=tenant.set&role=operator');
    expect(text).toContain('Setting changed</td>');
    expect(text).toContain('key: review.fourEyes · from: true · to: false');
    expect(text).toContain('<option value="apikey.created">API key created</option>');
    expect((await olaf.get('/console/audit')).text).not.toContain('Setting changed</td>');
  });

  it('a row of a newer gpd, whose words are not here, does not take the page away', async () => {
    await change(site, async (tx) => {
      const [row] = (await tx('audit_log').where({ kid: KID }).orderBy('seq', 'desc').limit(1)) as object[];
      await tx('audit_log').insert({ ...row, seq: undefined, action: 'moon.landed' });
    });
    const page = await dora.get('/console/audit');
    expect(page.status).toBe(200);
    expect(page.text).toContain('moon.landed</td>');
    await change(site, (tx) => tx('audit_log').where({ action: 'moon.landed' }).delete());
  });
});

it('the register shows each request with its due date, and gives it as CSV', async () => {
  const { requestId, visitorId } = await site.decide();
  const contestId = await site.contest(requestId, visitorId);
  const page = await dora.get('/console/register');
  expect(page.text).toContain(contestId);
  expect(page.text).toMatch(/due in \d+ days/);
  expect(page.text).not.toContain(requestId);
  const csv = await dora.get('/console/register.csv');
  expect(csv.headers['content-type']).toContain('text/csv');
  expect(csv.text).toContain(`contest,${contestId},`);
  for (const after of ['x', '1~', '%27', '9~con_']) {
    expect((await dora.get(`/console/register?after=${after}`)).status).toBe(200);
  }
});

describe('insight', () => {
  it('the ledger is verified; a proof is looked up', async () => {
    const verified = await dora.act('/console/ledger/verify');
    expect(verified.status).toBe(200);
    expect(verified.text).toContain('The ledger is whole');
    const proof = await dora.get('/console/ledger?seq=0');
    expect(proof.text).toContain('c2sp.org/tlog-proof@v1');
    for (const seq of ['999999', '-1', 'x', '%3Cscript%3E']) {
      const reply = await dora.get(`/console/ledger?seq=${seq}`);
      expect(reply.status).toBe(404);
      expect(reply.text).not.toContain('<script>');
    }
  });

  it('keys say when destroying one is safe', async () => {
    await site.gpd.json(['keys', 'rotate', KID]);
    const { text } = await dora.get('/console/keys');
    expect(text).toContain('No: browsers seal to it right now');
    expect(text).toContain('Not yet: ');
  });

  it('the overview says which rules were found wrong, and by how much that may be chance', async () => {
    await change(site, async (tx) => {
      await tx('rule_reviews').where({ kid: KID }).delete();
      await tx('rule_reviews').insert([
        { kid: KID, rule: 'A1', upheld: 1, overturned: 0, confirmed: 80, mistaken: 182 },
        { kid: KID, rule: 'M2', upheld: 0, overturned: 1, confirmed: 0, mistaken: 0 },
        { kid: KID, rule: 'T3', upheld: 4, overturned: 0, confirmed: 0, mistaken: 0 },
      ]);
    });
    const { text } = await dora.get('/console/overview');
    const row = (rule: string): string =>
      new RegExp(`<code class="quiet small">${rule}</code>(.*?)</li>`, 's').exec(text)?.[1] ?? '';
    expect(row('A1')).toMatch(
      />1 by ruling, 262 by outcome; 95\u00a0% range 63–\u206074\u00a0%<.*182 of 263</s,
    );
    expect(row('M2')).toMatch(/>1 by ruling, 0 by outcome; 95\u00a0% range 21–\u2060100\u00a0%<.*1 of 1</s);
    expect(row('T3')).toBe('');
    // One ruling is weaker evidence than 263 decisions.
    expect(text.indexOf('>A1</code>')).toBeLessThan(text.indexOf('>M2</code>'));
    await change(site, (tx) => tx('rule_reviews').where({ kid: KID }).delete());
    expect((await dora.get('/console/overview')).text).toContain('found a rule wrong');
  });

  it('the overview and the purposes have their pages', async () => {
    expect((await dora.get('/console/overview')).text).toContain('No visit was counted yet');
    const one = { principalId: 'shop-1', purpose: 'device-identification' };
    await site.gpd.json(['consent', 'grant', KID, one.principalId, one.purpose]);
    const sql = "UPDATE consent_state SET given = 'automation', doubt_seq = seq + 1";
    await execute(site.gpd.dataDir, sql);
    expect((await dora.get('/console/overview')).text).toMatch(
      /1 grant came just before an automated visit\.\s*<a href="\/console\/ledger\?given=automation">Look at it</,
    );
    expect((await dora.get('/console/ledger?given=agent')).text).toContain('No such grants.');
    const doubted = (await dora.get('/console/ledger?given=automation')).text;
    expect(doubted).toContain('<th scope="row">device-identification</th>');
    expect(doubted).not.toContain(one.principalId);
    const terms = (await dora.get('/console/terms')).text;
    expect(terms).toContain('device-identification');
    expect(terms).toContain('Preview of the banner');
    expect(terms).toMatch(/<dt>Asked in the banner<\/dt>\s*<dd>yes<\/dd>/);
    expect(terms).toContain('No page loaded the banner in the last 30 days.');
    expect(terms).not.toContain('untranslated');
    await site.gpd.json(['consent', 'purposes', 'set', KID, 'ads', '--title', 'Ads']);
    const line = async () =>
      /shows these words untranslated in: ([^.]*)\./.exec((await dora.get('/console/terms')).text);
    await vi.waitFor(async () => expect((await line())?.[1]).toMatch(/čeština.*Deutsch/));
  });
});
