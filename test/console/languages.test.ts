import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import express from 'express';
import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/console/context-service.ts';
import { createRender } from '../../src/console/render.ts';
import { createErrorPage } from '../../src/console/session-guard-service.ts';
import { OutcomeUnknown } from '../../src/lib/errors.ts';
import { PEOPLE_LANGUAGES } from '../../src/lib/languages.ts';
import { PEOPLE_WORDS, type TextKey } from '../../src/lib/people/say.ts';
import { KID } from '../support/constants.ts';
import { englishWords } from '../support/english.ts';
import { ask } from '../support/http.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';

/** The pages before a session speak the languages of people's pages; the console behind them is English. */

const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));
const BASE = 'http://localhost:8080';

/** A console that takes passkeys, because somebody is invited; the public origin is set afterwards. */
const invited = (origin: string) =>
  started(async () => {
    const first = await startGpd({ settings: { GPD_BASE_URL: BASE } });
    await first.json(['staff', 'invite', 'Rosa', '--role', 'dpo', '--tenant', KID]);
    if (origin === BASE) return first;
    await first.stop();
    return startGpd({ dataDir: first.dataDir, settings: { GPD_BASE_URL: origin } });
  });

const open = invited(BASE);
const digits = invited('https://192.0.2.7');
const insecure = invited('http://gpd.example');
const unset = started(() => startGpd());

const form = (fields: Readonly<Record<string, string>>, origin = BASE) => ({
  method: 'POST',
  headers: { origin, 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(fields).toString(),
});
/** The public origin is another one. */
const here = ({ port }: Gpd): string => `http://127.0.0.1:${port}`;
const LOGIN = '/console/login?here=1';
const EVIL = 'https://evil.example';

interface Page {
  readonly gpd?: Gpd;
  readonly path: string;
  readonly status: number;
  readonly title: TextKey;
  readonly options?: ReturnType<typeof form>;
}

const PAGES: readonly Page[] = [
  { path: LOGIN, status: 200, title: 'signin.title' },
  { path: '/console/join', status: 200, title: 'signin.join' },
  { path: '/console/signed-out', status: 200, title: 'signin.out' },
  { path: '/console/passkey', status: 400, title: 'fault.passkey-what', options: form({ answer: '{}' }) },
  { path: '/console/passkey', status: 403, title: 'error.origin-not-allowed-what', options: form({}, EVIL) },
  { path: '/console/passkey', status: 405, title: 'error.method-not-allowed-what' },
  { path: '/console/nothing', status: 404, title: 'error.not-found-what' },
  {
    path: '/console/contests/con_x/resolve',
    status: 401,
    title: 'signin.ended',
    options: form({ text: 'x' }),
  },
  { gpd: unset, path: LOGIN, status: 503, title: 'signin.unset' },
  { gpd: insecure, path: LOGIN, status: 503, title: 'signin.insecure' },
  { gpd: digits, path: LOGIN, status: 503, title: 'signin.digits' },
];

describe.each(PAGES)('$path: $title', ({ gpd = open, path, status, title, options }) => {
  const get = (at: string, language: string) =>
    ask(here(gpd), at, {
      ...options,
      headers: { accept: 'text/html', ...options?.headers, 'accept-language': language },
    });

  it.each(PEOPLE_LANGUAGES)('in %s by Accept-Language, and by ?lang= against it', async (language) => {
    const other = language === 'en' ? 'de' : 'en';
    const chosen = `${path}${path.includes('?') ? '&' : '?'}lang=${language}`;
    for (const reply of [await get(path, `${language}-XX`), await get(chosen, other)]) {
      expect(reply).toMatchObject({ status, headers: { 'content-language': language } });
      expect(reply.headers.vary).toContain('Accept-Language');
      expect(reply.text).toContain(`<html lang="${language}"`);
      expect(reply.text).toContain(`<h1>${PEOPLE_WORDS[language].PAGE[title].replaceAll("'", '&#39;')}</h1>`);
    }
  });

  it('in German has no English sentence', async () => {
    expect(englishWords((await get(path, 'en')).text)).not.toEqual([]);
    expect(englishWords((await get(path, 'de')).text)).toEqual([]);
  });
});

it('the switch keeps the way back, and the forms and links keep the choice', async () => {
  const { text } = await ask(here(open), `${LOGIN}&back=%2Fconsole%2Fkeys&lang=de`);
  expect(text).toContain('href="?here=1&amp;back=%2Fconsole%2Fkeys&amp;lang=pl"');
  expect(text).toContain('action="/console/passkey?lang=de"');
  const refused = await ask(here(open), '/console/passkey?lang=de', form({ answer: '{}' }));
  expect(refused.text).toContain('href="/console/login?lang=de"');
  // A switch would answer the form again, or lose it.
  expect(refused.text).not.toContain('hreflang');
});

it('a sign-in at another name of the server goes on in the same language', async () => {
  const { headers } = await ask(here(open), '/console/login?lang=de', { headers: { host: 'other.example' } });
  expect(headers.location).toBe(`${BASE}/console/login?here=1&back=%2Fconsole&lang=de`);
});

describe('a COMMIT whose outcome nobody knows', () => {
  const server = started(async () => {
    const app = express().set('views', VIEWS).set('view engine', 'ejs');
    app.get('/', () => {
      throw new OutcomeUnknown(new Error('reset'));
    });
    const render = createRender({ random: randomBytes, clock: Date.now });
    app.use(createErrorPage({ render, onFault: () => {} } as unknown as Context));
    const listening = app.listen(0, '127.0.0.1');
    await once(listening, 'listening');
    return { port: (listening.address() as AddressInfo).port, stop: async () => void listening.close() };
  });

  it.each(PEOPLE_LANGUAGES)('is not said to have changed nothing, in %s', async (language) => {
    const { status, text } = await ask(`http://127.0.0.1:${server.port}`, `/?lang=${language}`);
    const words = PEOPLE_WORDS[language].PAGE;
    expect(status).toBe(503);
    expect(text).toContain(words['error.outcome-means']);
    expect(text).not.toContain(words['error.unavailable-means']);
    if (language === 'de') expect(englishWords(text)).toEqual([]);
  });
});
