import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ask, type Reply } from '../support/http.ts';
import { startGpd } from '../support/server.ts';
import {
  type Console,
  type ConsoleOptions,
  cookieOf,
  createVisitor,
  follow,
  signIn,
  startConsole,
  type Visitor,
} from './support/console.ts';
import { rows } from './support/data.ts';

/** Signs in with a real identity provider: OIDC authorization code with PKCE. */

let site: Console;
beforeAll(async () => {
  site = await startConsole();
});
afterAll(() => site.stop());

/** Starts a console that ends with its test. */
async function startOwn(options?: ConsoleOptions): Promise<Console> {
  const ownConsole = await startConsole(options);
  onTestFinished(() => ownConsole.stop());
  return ownConsole;
}

/** Begins a sign-in. @returns a visitor with its cookie, and the address of the provider */
async function begin(): Promise<{ visitor: Visitor; to: URL; callback: (query: string) => Promise<Reply> }> {
  const visitor = createVisitor(site.url);
  const to = new URL((await visitor.get('/console/login')).headers.location!);
  const state = to.searchParams.get('state') ?? '';
  const iss = encodeURIComponent(site.idp.issuer);
  const callback = (query: string) => visitor.get(`/console/callback?state=${state}&iss=${iss}&${query}`);
  return { visitor, to, callback };
}

const NONCED = /^default-src 'none'; script-src 'nonce-([\w+/=]+)'; style-src 'nonce-\1'; /;

describe('sign-in', () => {
  it('sends a stranger to the provider with state, nonce and PKCE, and keeps nothing but a sealed cookie', async () => {
    const visitor = createVisitor(site.url);
    const first = await visitor.get('/console/queue?state=resolved');
    expect(first.status).toBe(303);
    expect(first.headers.location).toBe('/console/login?back=%2Fconsole%2Fqueue%3Fstate%3Dresolved');
    const reply = await visitor.get(first.headers.location!);
    expect(reply.status).toBe(302);
    const to = new URL(reply.headers.location!);
    expect(to.origin).toBe(site.idp.issuer);
    expect(Object.fromEntries(to.searchParams)).toMatchObject({
      client_id: 'console',
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${site.url}/console/callback`,
    });
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(to.searchParams.get(name)).toMatch(/^[\w-]{43}$/);
    }
    expect(reply.headers['set-cookie']).toEqual([
      expect.stringMatching(/^gpd_login_[\w-]{8}=[\w-]+; HttpOnly; SameSite=Lax; Path=\/; Max-Age=600$/),
    ]);
  });

  it('lets a reviewer in, back to where they wanted to go, with a Lax cookie that scripts do not see', async () => {
    const staff = await signIn(site.url, 'ada', '/console/queue?due=7');
    expect(staff.last.status).toBe(303);
    expect(staff.last.headers.location).toBe('/console/queue?due=7');
    expect(staff.last.headers['set-cookie']).toContainEqual(
      expect.stringMatching(/^gpd_console=[\w-]{43}; HttpOnly; SameSite=Lax; Path=\/; Max-Age=28800$/),
    );
    const page = await staff.get('/console/queue');
    expect(page.status).toBe(200);
    expect(page.text).toContain('Ada Lovelace');
    expect(page.text).not.toContain('/console/audit');
    expect(page.headers['content-security-policy']).toMatch(NONCED);
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    expect(page.headers['referrer-policy']).toBe('same-origin');
    // A nonce is used once.
    const again = (await staff.get('/console/queue')).headers['content-security-policy'];
    expect(again).not.toBe(page.headers['content-security-policy']);
  });

  it.each([
    ['sam', 'You have no role here'],
    ['una', 'has no tenant'],
    ['nils', 'does not exist here'],
    ['nobody', 'You have no role here'],
  ])('%s is not let in: %s', async (account, words) => {
    const staff = await signIn(site.url, account);
    expect(staff.last.status).toBe(403);
    expect(staff.last.text).toContain(words);
    expect([...staff.cookies.keys()]).toEqual([]);
  });

  it.each([
    'https://evil.example/',
    '//evil.example',
    '/console//evil.example',
    '/v1/x',
    '/console/logout',
    '/console@evil',
    '/console/../v1',
    '/consolex',
    '/console/a\\b',
    '/console/%2e%2e/v1/x',
    '/console/signed-out',
    `/console/${'a'.repeat(600)}`,
  ])('back=%s leads to the console itself', async (back) => {
    const staff = await signIn(site.url, 'ada', back);
    expect(staff.last.headers.location).toBe('/console');
  });

  it('the answer to a sign-in that another browser began, or to none, is refused', async () => {
    const { visitor, to } = await begin();
    const state = to.searchParams.get('state') ?? '';
    // The name of the cookie contains the beginning of the state.
    const changed = `${state.slice(0, -1)}${state.endsWith('A') ? 'E' : 'A'}`;
    const iss = encodeURIComponent(site.idp.issuer);
    for (const [browser, sentState] of [
      [createVisitor(site.url), state],
      [visitor, changed],
    ] as const) {
      const reply = await browser.get(`/console/callback?code=abc&state=${sentState}&iss=${iss}`);
      expect(reply.status).toBe(400);
      expect(reply.text).toContain('did not start here');
      expect([...browser.cookies.keys()]).toEqual([]);
    }
  });

  it.each([
    ['an error of the provider', 'error=server_error', 400],
    ['a person who cancelled', 'error=access_denied', 403],
    ['a code that is none', 'code=made-up', 400],
    ['no code', 'x=1', 400],
  ])('%s: a page that says so', async (_name, query, status) => {
    const { visitor, callback } = await begin();
    const reply = await callback(query);
    expect(reply.status).toBe(status);
    expect(reply.text).toContain('Sign in again');
    // The pending sign-in works only once.
    expect([...visitor.cookies.keys()]).toEqual([]);
  });

  it('begun at another name of this server, it goes on at the public one, and makes no circle', async () => {
    const { port } = new URL(site.url);
    const headers = { host: `localhost:${port}` };
    const reply = await ask(site.url, '/console/login?back=%2Fconsole%2Fkeys', { headers });
    expect(reply.headers.location).toBe(`${site.url}/console/login?here=1&back=%2Fconsole%2Fkeys`);
    const again = await ask(site.url, '/console/login?here=1', { headers });
    expect(new URL(again.headers.location!).origin).toBe(site.idp.issuer);
  });

  it('a new sign-in ends the session before it', async () => {
    const first = await signIn(site.url, 'ada');
    const stolen = createVisitor(site.url);
    for (const [name, value] of first.cookies) stolen.cookies.set(name, value);
    const began = await first.get('/console/login');
    let at = began.headers.location!;
    for (let hop = 0; hop < 5 && !at.startsWith(`${site.url}/console/callback`); hop += 1) {
      at = new URL((await first.get(at)).headers.location!, at).href;
    }
    expect((await first.get(at)).status).toBe(303);
    expect((await stolen.get('/console/queue')).status).toBe(303);
    expect((await first.get('/console/queue')).status).toBe(200);
  });

  it('sign-out ends the session on the server', async () => {
    const staff = await signIn(site.url, 'ada');
    const stolen = createVisitor(site.url);
    for (const [name, value] of staff.cookies) stolen.cookies.set(name, value);
    expect((await stolen.get('/console/queue')).status).toBe(200);
    const out = await staff.post('/console/logout', { csrf: await staff.csrf() });
    expect(out.status).toBe(200);
    expect(out.text).toContain('You are signed out');
    expect((await stolen.get('/console/queue')).status).toBe(303);
  });

  it('a dpo ends a colleague’s session; a reviewer sees their own alone', async () => {
    const ada = await signIn(site.url, 'ada');
    const dora = await signIn(site.url, 'dora');
    const other = await signIn(site.url, 'olaf');
    expect((await ada.get('/console/sessions')).text).not.toContain('Dora Privat');
    const list = (await dora.get('/console/sessions')).text;
    expect(list).toContain('Dora Privat');
    expect(list).not.toContain('Olaf Other');
    const ids = [...list.matchAll(/name="id" value="(\w{16})"/g)].map(([, id]) => id!);
    expect(ids.length).toBeGreaterThan(0);
    // A dpo of another tenant cannot end it.
    for (const id of ids) {
      expect((await other.post('/console/sessions/revoke', { csrf: await other.csrf(), id })).status).toBe(
        303,
      );
    }
    expect((await ada.get('/console/queue')).status).toBe(200);
    for (const id of ids) await dora.post('/console/sessions/revoke', { csrf: await dora.csrf(), id });
    expect((await ada.get('/console/queue')).status).toBe(303);
    expect((await dora.get('/console/queue')).status).toBe(200);
  });
});

describe('a sign-in page that another site opens', () => {
  it('again and again: its cookies never outgrow the headers of a request', async () => {
    const visitor = createVisitor(site.url);
    for (let i = 0; i < 20; i += 1) expect((await visitor.get('/console/login')).status).toBe(302);
    expect(visitor.cookies.size).toBeLessThanOrEqual(8);
    // The newest sign-in still works.
    expect((await follow(visitor, site.url, '/console/login', 'ada')).headers.location).toBe('/console');
  });
});

describe('how staff are called', () => {
  it.each([
    ['blank', 'blanche'],
    ['mail', 'petra'],
    ['turned', 'evil abc'],
  ])('%s: by the first name that can be read', async (account, label) => {
    const staff = await signIn(site.url, account);
    expect((await staff.get('/console/help')).text).toContain(`<bdi>${label}</bdi>`);
  });
});

describe('changing persons in one browser', () => {
  const unescaped = (text: string): string => text.replaceAll('&amp;', '&');

  it('whoever has no role is asked at the provider who they are, also where it knows no choice of accounts', async () => {
    const visitor = createVisitor(site.url);
    const refused = await follow(visitor, site.url, '/console/login', 'sam');
    expect(refused.status).toBe(403);
    const link = /href="(\/console\/login[^"]*)"/.exec(refused.text)?.[1] ?? '';
    const authorizeUrl = new URL((await visitor.get(link)).headers.location!);
    expect(authorizeUrl.searchParams.get('prompt')).toBe('select_account');
    const last = await follow(visitor, site.url, link, 'ada');
    expect(last.headers.location).toBe('/console');
    expect((await visitor.get('/console/queue')).text).toContain('Ada Lovelace');
  });

  it('a usual sign-in asks for nothing: the provider may know the person already', async () => {
    const to = new URL((await createVisitor(site.url).get('/console/login')).headers.location!);
    expect(to.searchParams.has('prompt')).toBe(false);
    const junk = await createVisitor(site.url).get('/console/login?switch=none%20consent');
    expect(new URL(junk.headers.location!).searchParams.has('prompt')).toBe(false);
  });

  it('sign-out offers to go on at the provider, which sends back to a page that says so', async () => {
    const visitor = createVisitor(site.url);
    await follow(visitor, site.url, '/console/login', 'ada');
    const out = await visitor.post('/console/logout', { csrf: await visitor.csrf() });
    const address = /href="([^"]+\/session\/end[^"]+)"/.exec(out.text)?.[1] ?? '';
    const to = new URL(unescaped(address));
    expect(to.origin).toBe(site.idp.issuer);
    expect(Object.fromEntries(to.searchParams)).toMatchObject({
      client_id: 'console',
      post_logout_redirect_uri: `${site.url}/console/signed-out`,
      id_token_hint: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/) as string,
    });
    const confirm = await visitor.get(to.href);
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(confirm.text)?.[1] ?? '';
    const action = /action="([^"]+)"/.exec(confirm.text)?.[1] ?? '';
    const back = await visitor.post(action, { xsrf, logout: 'yes' });
    expect(back.headers.location).toBe(`${site.url}/console/signed-out`);
    const page = await visitor.get('/console/signed-out');
    expect([page.status, page.text.includes('You are signed out')]).toEqual([200, true]);
    // The provider has forgotten Ada, so Grace can sign in with the same browser.
    await follow(visitor, site.url, '/console/login', 'grace');
    expect((await visitor.get('/console/queue')).text).toContain('Grace Hopper');
    // A visitor with a session does not see the page "signed out".
    expect((await visitor.get('/console/signed-out')).headers.location).toBe('/console');
  });

  it('a provider without such an address: signed out here, and the next sign-in asks who it is', async () => {
    const ownConsole = await startOwn({ idp: { signsOut: false } });
    const staff = await signIn(ownConsole.url, 'ada');
    const out = await staff.post('/console/logout', { csrf: await staff.csrf() });
    expect(out.text).not.toContain('Sign out at the identity provider');
    expect(out.text).toContain('href="/console/login?switch=select_account"');
  });

  it('no row holds the ID token in the clear', async () => {
    const staff = await signIn(site.url, 'ada');
    const stored = await rows<{ id_token: string | null }>(site, 'console_sessions');
    expect(stored.some((row) => row.id_token !== null)).toBe(true);
    for (const { id_token: sealed } of stored) expect(sealed ?? '').not.toMatch(/^ey|\./);
    expect((await staff.get('/console/queue')).status).toBe(200);
  });
});

describe('a session, when the settings of its provider change', () => {
  let first: Console;
  const people = new Map<string, { readonly csrf: string; readonly headers: Record<string, string> }>();
  const personOf = (name: string) => people.get(name) ?? { csrf: '', headers: {} };
  beforeAll(async () => {
    first = await startConsole();
    for (const name of ['ada', 'grace', 'dora']) {
      const staff = await signIn(first.url, name);
      people.set(name, { csrf: await staff.csrf(), headers: { cookie: cookieOf(staff) } });
    }
    await first.gpd.stop();
  });
  afterAll(() => first.stop());

  const ISSUER = 'GPD_OIDC_ISSUER';
  const CLIENT = 'GPD_CONSOLE_CLIENT_ID';
  const SECRET = 'GPD_CONSOLE_CLIENT_SECRET_FILE';

  /** Starts gpd again on the same data. @param unset settings that are gone */
  async function restart(changed: Record<string, string>, unset: readonly string[] = []) {
    const entries = Object.entries(first.settings).filter(([name]) => !unset.includes(name));
    const settings = { ...Object.fromEntries(entries), ...changed };
    const gpd = await startGpd({ dataDir: first.gpd.dataDir, settings });
    onTestFinished(async () => void (await gpd.stop()));
    return gpd;
  }
  const statusAt = async (url: string, name = 'ada') =>
    (await ask(url, '/console/queue', { headers: personOf(name).headers })).status;

  it.each<[string, Record<string, string>, readonly string[]]>([
    ['no issuer', {}, [ISSUER, CLIENT, SECRET]],
    ['another issuer', { [ISSUER]: 'http://127.0.0.1:9' }, []],
    ['another client', { [CLIENT]: 'another' }, []],
  ])('%s: it ended, and signing out says so', async (_name, changed, unset) => {
    const { url } = await restart(changed, unset);
    expect(await statusAt(url)).toBe(303);
    const out = await signOutAt(url);
    expect([out.status, out.text.includes('Sign in again')]).toEqual([401, true]);
  });

  it('the same: it goes on', async () => {
    expect(await statusAt((await restart({})).url)).toBe(200);
  });

  const signOutAt = (url: string, name = 'ada') =>
    ask(url, '/console/logout', {
      method: 'POST',
      headers: {
        ...personOf(name).headers,
        origin: url,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: `csrf=${encodeURIComponent(personOf(name).csrf)}`,
    });

  it.each([
    ['no secret', 'grace', [SECRET]],
    ['no client', 'dora', [CLIENT, SECRET]],
  ])('%s: it can be signed out', async (_name, person, unset) => {
    const { url } = await restart({}, unset);
    const out = await signOutAt(url, person);
    expect([out.status, out.text.includes('You are signed out')]).toEqual([200, true]);
    expect(out.text).not.toContain('Sign out at the identity provider');
    expect(await statusAt(url, person)).toBe(303);
  });
});
