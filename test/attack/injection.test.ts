import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderFile } from 'ejs';
import { beforeAll, describe, expect, it } from 'vitest';
import { SHOP_WORDS, shopText } from '../../src/demo/shop-words.ts';
import { ENGLISH } from '../../src/lib/people/say.ts';
import { pageWords } from '../../src/rights/me/page-words.ts';
import { startDemo } from '../browser/support/demo.ts';
import { apiKey, startRightsProcess } from '../rights/support/rights.ts';
import { ask, type Reply } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { started } from '../support/started.ts';
import { exchange } from './support/raw.ts';

/** Text from a stranger stays text in a page, in a header and in a log line. */

const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));
const HOSTILE = `"'><script>alert(1)</script><img src=x onerror=alert(1)><%= 7*7 %>\${7*7}{{7*7}}&lt;`;

const templates = readdirSync(VIEWS, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ejs'),
);

/** Raw, because it is a file of ours: the style sheet of an archive, which is read without a server. */
const OWN_TEXT: Readonly<Record<string, readonly string[]>> = {
  'dsar/partials/head.ejs': ['style'],
  'parts/style.ejs': ['tokens', 'base', 'parts'].map((name) => `include('../assets/${name}.css')`),
  // Style sheets of ours, for the page that is saved.
  'my-data.ejs': ["include('assets/people.css')"],
  // Nothing else is served beside them.
  'setup.ejs': ["include('assets/people.css')", "include('assets/setup.js')"],
  ...Object.fromEntries(
    ['sign-in', 'sign-out'].map((name) => [`demo/${name}.ejs`, ["include('../assets/people.css')"]]),
  ),
};

describe('templates', () => {
  it.each(templates)('%s prints nothing raw but other templates, and quotes every attribute', (name) => {
    const text = readFileSync(join(VIEWS, name), 'utf8');
    const raw = [...text.matchAll(/<%-([\s\S]*?)%>/g)].map((match) => (match[1] ?? '').trim());
    const ownCode = OWN_TEXT[name.replaceAll('\\', '/')] ?? [];
    expect(raw.filter((code) => !/^include\('[\w./-]+'/.test(code) && !ownCode.includes(code))).toEqual([]);
    // An unquoted attribute ends at a blank, which escaping leaves alone; a script or a style is no text at all.
    expect([...text.matchAll(/\s[\w:-]+\s*=\s*<%/g)]).toEqual([]);
    for (const [, inside = ''] of text
      .replace(/<%[\s\S]*?%>/g, '')
      .matchAll(/<(?:script|style)\b[^>]*>([\s\S]*?)<\/(?:script|style)>/g)) {
      expect(inside.trim()).toBe('');
    }
    expect(text).not.toMatch(/\son\w+\s*=|javascript:|srcdoc/i);
  });

  const operation = {
    id: HOSTILE,
    method: HOSTILE,
    path: HOSTILE,
    summary: HOSTILE,
    request: { [HOSTILE]: HOSTILE },
    responses: [{ status: HOSTILE, description: HOSTILE }],
  };
  const english = { href: '?lang=en', text: 'English', lang: 'en', isCurrent: true };
  const ours = { ...ENGLISH, languages: [english], langQuery: '' };
  it.each([
    ['my-data.ejs', { kid: HOSTILE, notice: { contact: HOSTILE }, ...ours, ...pageWords(ours) }],
    ['reference.ejs', { version: HOSTILE, operations: [operation] }],
    [
      'demo/mails.ejs',
      { mails: [{ subject: HOSTILE, to: HOSTILE, from: HOSTILE, text: HOSTILE, date: new Date() }] },
    ],
    [
      'demo/builder.ejs',
      {
        ...{ request: HOSTILE, keys: HOSTILE, echo: HOSTILE, errors: { request: HOSTILE, keys: HOSTILE } },
        keySet: [{ thumbprint: HOSTILE }],
        explanation: {
          ...{ text: HOSTILE, reason: HOSTILE },
          signatures: [
            { label: HOSTILE, text: HOSTILE, base: HOSTILE, outcome: { status: HOSTILE, reason: HOSTILE } },
          ],
        },
      },
    ],
    [
      'demo/tour.ejs',
      {
        ...{ kid: HOSTILE, shopName: HOSTILE, publishableKey: HOSTILE, verifyCommand: HOSTILE },
        ...{ ...ours, wares: [], retentionDays: 90, scriptWords: SHOP_WORDS.en.script },
        text: (key: string) => shopText('en', key),
      },
    ],
  ])('%s shows hostile values as text', async (name, values) => {
    const html = await renderFile(join(VIEWS, name), values, { async: false });
    expect(html).not.toMatch(/<script>alert|<img src=x|>49</);
    expect(html).toContain('&lt;script&gt;alert(1)');
    // Each hostile value that was handed in is there, escaped.
    const expectedCount = JSON.stringify(values).split(JSON.stringify(HOSTILE).slice(1, -1)).length - 1;
    expect(html.split('&#34;&#39;&gt;').length - 1).toBeGreaterThanOrEqual(expectedCount);
  });
});

/** Express passes these to EJS when it renders a page from a query. */
const OPTIONS = [
  'settings[view options][outputFunctionName]=x;process.exit();s',
  'settings[view options][escapeFunction]=process.exit',
  'settings[view options][client]=1',
  'outputFunctionName=x;process.exit();s',
  'delimiter=%3F&openDelimiter=%5B',
  'debug=true&compileDebug=true&cache=false',
  '__proto__[outputFunctionName]=x;process.exit();s',
].map((text) => text.replaceAll(' ', '%20'));

const rights = started(() => startRightsProcess({ settings: { GPD_LOG_LEVEL: 'trace' } }));
let key = '';
beforeAll(async () => {
  key = await apiKey(rights, 'secret');
});

function expectPlain({ status, text }: Reply): void {
  expect(status).toBeLessThan(500);
  expect(text).not.toMatch(/<script>alert|onerror=alert|>49</);
}

describe('pages', () => {
  it.each(OPTIONS)('/my-data and /docs are the same with ?%s', async (query) => {
    for (const path of ['/my-data?kid=acme', '/docs?x=1']) {
      const plain = await ask(rights.gpd.url, path);
      const other = await ask(rights.gpd.url, `${path}&${query}`);
      expect({ status: other.status, text: other.text }).toEqual({ status: 200, text: plain.text });
    }
  });

  it.each([
    '/my-data?kid=',
    '/docs?',
    '/docs/',
    '/_fp/pubkey?kid=',
    '/v1/embed.js?lang=',
    '/v1/consent/banner?kid=',
  ])('%s shows no markup that it was sent', async (path) => {
    for (const text of [HOSTILE, '<script>alert(1)</script>', '"onerror=alert(1)', '%3Cscript%3E']) {
      expectPlain(await ask(rights.gpd.url, path + encodeURIComponent(text)));
    }
  });

  it('the tour of gpd demo asks for a decision, and for nothing else, whatever the id is', async () => {
    const demo = await startDemo();
    try {
      const origin = new URL(demo.shop).origin;
      expectPlain(await ask(origin, `/demo?shopName=${encodeURIComponent(HOSTILE)}`));
      const ids = [
        '..',
        '../ledger/vkey',
        '%2e%2e',
        '..%2f..%2fhealthz',
        '?',
        '#',
        HOSTILE,
        'x'.repeat(2000),
      ];
      for (const id of ids) {
        const reply = await ask(origin, `/demo/decision?requestId=${encodeURIComponent(id)}`);
        expectPlain(reply);
        expect({ id, isRefused: reply.status >= 400 }).toEqual({ id, isRefused: true });
      }
    } finally {
      await demo.stop();
    }
  });
});

const FORGED = 'FORGED-c4n4ry';
/** New lines of every kind, terminal escapes, a line of JSON. */
const LINES = [
  `\r\n{"level":30,"event":"${FORGED}"}`,
  `\n${FORGED}`,
  `\r${FORGED}`,
  `\u2028${FORGED}`,
  `\u001b[2J${FORGED}`,
  `\u009b31m${FORGED}`,
  `\u0007\u0008${FORGED}`,
];
const HEADERS = [
  ...['user-agent', 'origin', 'x-forwarded-for', 'forwarded', 'x-request-id', 'authorization', 'cookie'],
  ...['signature-agent', 'signature-input', 'signature', 'host', 'idempotency-key', 'content-type'],
  ...['accept-encoding', 'expect', 'te'],
];
const bytesOf = (text: string): string => Buffer.from(text).toString('latin1');

describe('the log', () => {
  it('has no line of what strangers write, and no word but a refused origin or kid, escaped', async () => {
    const { gpd } = rights;
    for (const line of LINES) {
      const encoded = encodeURIComponent(line);
      const paths = [
        `/${encoded}`,
        `/v1/decisions/${encoded}`,
        `/_fp/pubkey?kid=${encoded}`,
        `/assets/${encoded}`,
        `/v1/ledger/tile/${encoded}`,
      ];
      for (const path of paths) {
        await ask(gpd.url, path, { headers: { authorization: `Bearer ${key}` } });
      }
      await Promise.all(
        HEADERS.map(async (name) => {
          const head = `POST /v1/consent/grant HTTP/1.1\r\nHost: x\r\n${name}: ${bytesOf(line)}\r\nContent-Length: 0\r\n\r\n`;
          await exchange(gpd.port, [head]);
        }),
      );
      const body = { principalId: line, purposes: [line], requestId: line, contestId: line, token: line };
      for (const path of ['/v1/consent/grant', '/me', '/privacy/erase', '/_fp/i/v1']) {
        await rights.call(path, body, path.startsWith('/v1') ? key : '');
      }
      const signals = { page: { userAgent: line, platform: line }, [line]: line };
      await rights.call('/_fp/i/v1', createBundle(rights.acme, { signals }));
      await exchange(gpd.port, [`GET http://${FORGED}:${FORGED}/healthz HTTP/1.1\r\nHost: x\r\n\r\n`]);
    }
    const lines = gpd
      .logs()
      .split('\n')
      .filter((line) => line !== '');
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const { refused: _named, ...rest } = JSON.parse(line) as Record<string, unknown>;
      expect(rest).toMatchObject({ level: expect.any(Number) });
      expect(JSON.stringify(rest)).not.toContain(FORGED);
    }
    expect(gpd.logs()).not.toMatch(/(?!\n)[\p{Cc}\u2028\u2029]/u);
  });

  it('and no header of an answer repeats them', async () => {
    for (const line of LINES) {
      const { answers } = await exchange(rights.gpd.port, [
        `OPTIONS /v1/consent/grant HTTP/1.1\r\nHost: x\r\nOrigin: https://shop.example${bytesOf(line)}\r\nX-Request-Id: ${bytesOf(line)}\r\n\r\n`,
      ]);
      for (const { headers, body } of answers) {
        expect(JSON.stringify([...headers])).not.toContain(FORGED);
        expect(body).not.toContain(FORGED);
      }
    }
  });
});
