import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../src/lib/crypto.ts';
import { addApiKey } from '../../support/api-key.ts';
import { REASON } from '../../support/constants.ts';
import { ask } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { createCase } from '../support/cases.ts';
import { cookieOf, signIn, startConsole } from '../support/console.ts';
import { idle, rows } from '../support/data.ts';
import { ROUTES } from '../support/routes.ts';

/** Hostile values in every field of every form and address, and conflicts between colleagues. */

const site = started(() => startConsole());
const dora = started(() => signIn(site.url, 'dora'));
const newCase = () => createCase(site);

const HOSTILE: Readonly<Record<string, string>> = {
  HTML: `"><img src=x onerror=alert(1)><script>alert('x')</script>`,
  'what closes a field': `</textarea></script></title><script>alert(1)</script>`,
  'a template': '<%= process.env %> {{7*7}} #{7*7}',
  'control characters': 'a\u0000b\u0001\u001b[31m\u0007\u007f\u0085',
  'directions and what is invisible': 'abc\u202e\u2066def\u2069\u200f\u200b\ufeff',
  'half a character': '\ud800',
  'a line of a header': 'x\r\nSet-Cookie: a=b\r\n\r\n<h1>',
  'a path': '../../../../../etc/passwd',
  'a name of an object': '__proto__',
  SQL: `' OR 1=1; DROP TABLE contests; --`,
  'a number': '9'.repeat(400),
  'sixty thousand characters': 'x'.repeat(60_000),
  nothing: '',
};

const FORMS: Readonly<Record<string, readonly string[]>> = {
  '/passkey': ['answer', 'invitation', 'back'],
  '/sessions/revoke': ['id'],
  '/contests/:id/claim': ['from'],
  '/contests/:id/release': ['from'],
  '/contests/:id/ask': ['text', 'question'],
  '/contests/:id/extend': ['text', 'question', 'extension', 'days'],
  '/contests/:id/resolve': ['text', 'question', 'outcome', 'version', 'from'],
  '/contests/:id/template': ['text', 'question', 'outcome', 'template'],
  '/subjects': ['kind', 'id'],
  '/subjects/plan': ['kind', 'id'],
  '/subjects/erase': ['kind', 'id', 'confirm'],
  '/subjects/export': ['kind', 'id', 'unnamed'],
  '/subjects/hold': ['kind', 'id', 'basis', 'scope-decisions'],
  '/holds/release': ['device', 'scope'],
  '/evidence': ['from', 'to', 'kind', 'id'],
  '/audit/export': ['action', 'role', 'actor', 'object', 'from', 'to', 'before'],
  '/ledger/verify': ['anything'],
};
const QUERIES: Readonly<Record<string, readonly string[]>> = {
  '/queue': ['q', 'state', 'list', 'class', 'age', 'due', 'sort', 'after', 'before', 'done'],
  '/contests/:id': ['done', 'template'],
  '/register': ['after'],
  '/audit': ['action', 'role', 'actor', 'object', 'from', 'to', 'before'],
  '/ledger': ['seq'],
  '/terms': ['lang'],
  '/banner': ['lang'],
  '/holds': ['done'],
  '/sessions': ['done'],
  '/login': ['back', 'here'],
  '/callback': ['code', 'state', 'error', 'error_description', 'iss'],
};

function expectHarmless(reply: { status: number; text: string; headers: object }, request: string): void {
  expect({ request, status: reply.status < 500 || reply.status === 503 }).toEqual({ request, status: true });
  expect({ request, ran: /<img src=x|<script>|onerror=alert\(1\)>/.test(reply.text) }).toEqual({
    request,
    ran: false,
  });
  expect(Object.keys(reply.headers)).not.toContain('a');
  expect(JSON.stringify(reply.headers)).not.toMatch(/"a=b/);
}

describe('every field', () => {
  it('is named here', () => {
    const forms = Object.entries(ROUTES).filter(([, methods]) => methods.includes('POST'));
    expect(forms.map(([path]) => path).filter((path) => path !== '/logout')).toEqual(
      expect.arrayContaining(Object.keys(FORMS)),
    );
    expect(Object.keys(FORMS)).toHaveLength(forms.length - 1);
  });

  it.each(Object.entries(FORMS))(
    'of the form %s',
    async (route, fields) => {
      const { path, requestId } = await newCase();
      const address = `/console${route}`.replace('/console/contests/:id', path);
      const good = { kind: 'request', id: requestId, outcome: 'upheld', text: REASON, basis: REASON };
      for (const field of fields) {
        for (const [name, value] of Object.entries(HOSTILE)) {
          const page = route.endsWith('/resolve') ? (await dora.get(path)).text : '';
          const version = /name="version" value="(\d+)"/.exec(page)?.[1] ?? '1';
          const reply = await dora.act(address, { ...good, version, [field]: value });
          expectHarmless(reply, `${route} ${field}: ${name}`);
        }
      }
      // Pages that show the stored values must be harmless too.
      for (const page of [path, '/console/queue', '/console/holds', '/console/audit', '/console/sessions']) {
        const reply = await dora.get(page);
        expect([200, 404]).toContain(reply.status);
        expectHarmless(reply, page);
        expect(reply.text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u200f]/);
      }
    },
    120_000,
  );

  it.each(Object.entries(QUERIES))(
    'of the address %s',
    async (route, fields) => {
      const { contestId } = await newCase();
      for (const field of fields) {
        for (const [name, value] of Object.entries(HOSTILE)) {
          const query = encodeURIComponent(value.toWellFormed().slice(0, 8000));
          const path = `/console${route.replace(':id', contestId)}?${field}=${query}`;
          expectHarmless(await dora.get(path), `${route} ${field}: ${name}`);
        }
        const twice = `/console${route.replace(':id', contestId)}?${field}=a&${field}=b`;
        expectHarmless(await dora.get(twice), `${route} ${field}: twice`);
        const broken = `/console${route.replace(':id', contestId)}?${field}=%ff%c0%80%`;
        expectHarmless(await dora.get(broken), `${route} ${field}: no UTF-8`);
      }
    },
    120_000,
  );

  it('bytes that are no text are refused or read as replacement characters', async () => {
    const { path } = await newCase();
    const reply = await ask(site.url, `${path}/ask`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: site.url,
        cookie: cookieOf(dora),
      },
      body: Buffer.concat([Buffer.from(`csrf=${await dora.csrf()}&text=`), Buffer.alloc(40, 0xff)]),
    });
    expect(reply.status).toBeLessThan(500);
  });

  it('no fault of this server came of any of it', () => {
    expect(site.gpd.logs()).not.toMatch(/"event":"fault"/);
  });
});

describe('secrets', () => {
  it('stand on no page: not the session, not a key, not a durable id, and the receipt of nobody’s ids', async () => {
    const { path, requestId } = await newCase();
    const secret = await addApiKey(site.gpd);
    const pages = Object.entries(ROUTES)
      .filter(([, methods]) => methods.startsWith('GET'))
      .map(([page]) => `/console${page}`.replace('/console/contests/:id', path))
      .filter((page) => !page.includes(':id') && !/\/(?:login|callback)$/.test(page));
    const texts = await Promise.all(pages.map(async (page) => (await dora.get(page)).text));
    const key = { kind: 'request', id: requestId };
    for (const page of ['/console/subjects', '/console/subjects/plan'])
      texts.push((await dora.act(page, key)).text);
    const durables = (await rows<{ durable: string }>(site, 'sightings')).map(({ durable }) => durable);
    expect(durables.length).toBeGreaterThan(0);
    const cookies = [...dora.cookies.values()];
    const hashes = cookies.map((value) => sha256(value).toString('hex'));
    const hidden = [...cookies, ...hashes, ...durables, secret];
    for (const text of texts) {
      expect(text).not.toMatch(/gpd_(?:sk|op|ro|ps)_/);
      for (const value of hidden) expect(text.includes(value)).toBe(false);
    }
  });
});

describe('a session that ends while somebody writes', () => {
  it('the basis of a hold is on the page, to be copied', async () => {
    const { requestId } = await newCase();
    const visitor = await signIn(site.url, 'dpo-2');
    const token = await visitor.csrf();
    await idle(site, 'Dirk Privat');
    const basis = 'Proceedings 13/26 before the <district> court.';
    const fields = { csrf: token, kind: 'request', id: requestId, 'scope-decisions': 'on', basis };
    const reply = await visitor.post('/console/subjects/hold', fields);
    expect(reply.status).toBe(401);
    expect(reply.text).toContain('Copy your text');
    expect(reply.text).toContain('before the &lt;district&gt; court.');
    expect(await rows(site, 'legal_holds')).not.toContainEqual(expect.objectContaining({ basis }));
  });
});
