import type { Request, Response, Router } from 'express';
import { CONSOLE_ABSOLUTE_MS } from '../auth/console-session.ts';
import { LoginRefused } from '../auth/login.ts';
import type { Switching } from '../auth/ports.ts';
import { Unavailable } from '../lib/errors.ts';
import { cookieNames, LOGIN_MS, mayServe, openLogin, safeBack, sealLogin, setCookie } from './cookies.ts';
import type { ConsoleCore } from './ports.ts';
import type { Render } from './render.ts';
import type { Desk } from './session-guard.ts';

/** Sign-ins that may be under way in one browser. */
const MAX_PENDING = 8;

const stale = (all: readonly string[], prefix: string): readonly string[] => {
  const pending = all.filter((name) => name.startsWith(prefix));
  return pending.length < MAX_PENDING ? [] : pending;
};

const readSwitching = (value: unknown): Switching | null =>
  value === 'select_account' || value === 'login' ? value : null;

/** Sign-in and sign-out. Everything that can go wrong has a page that says what to do. */

export function loginPages(router: Router, core: ConsoleCore, desk: Desk, render: Render): void {
  const { login } = core;

  /** @returns true when the page was shown */
  function unconfigured(response: Response): boolean {
    const missing = login.missing();
    if (missing.length > 0) render(response, 'setup', { missing }, 503);
    else if (!mayServe(core.origin())) render(response, 'insecure', { origin: core.origin() }, 503);
    else return false;
    return true;
  }

  function fail(response: Response, why: string, status: number): void {
    render(response, 'sign-in', { why }, status);
  }

  /** The provider sends everybody back to the public origin: the cookie has to be there. Once, or a proxy makes a circle. */
  function elsewhere(request: Request): string | null {
    const origin = new URL(core.origin());
    if (request.headers.host === origin.host || request.query['here'] !== undefined) return null;
    const back = encodeURIComponent(safeBack(request.query['back']));
    const switching = readSwitching(request.query['switch']);
    const more = switching === null ? '' : `&switch=${switching}`;
    return `${origin.origin}/console/login?here=1&back=${back}${more}`;
  }

  router.get('/login', async (request, response) => {
    if (unconfigured(response)) return;
    const address = elsewhere(request);
    if (address !== null) {
      response.redirect(302, address);
      return;
    }
    try {
      const switching = readSwitching(request.query['switch']);
      const { url, ...begun } = await login.begin(switching);
      const names = cookieNames(core.origin());
      const pending = { ...begun, switching, back: safeBack(request.query['back']) };
      const sealed = sealLogin(core.loginKey, core.random, pending, core.clock());
      // Another site may begin sign-ins without end: their cookies together must not outgrow a request's headers.
      for (const name of stale(core.http.cookieNames(request.headers.cookie), names.login('')))
        response.append('set-cookie', setCookie(name, '', 0, names.secure));
      response.append('set-cookie', setCookie(names.login(begun.state), sealed, LOGIN_MS, names.secure));
      response.set({ 'cache-control': 'no-store' }).redirect(302, url);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      response.set('retry-after', String(error.retryAfterSeconds));
      fail(response, 'provider-down', 503);
    }
  });

  async function comeBack(request: Request, response: Response): Promise<void> {
    const names = cookieNames(core.origin());
    const { state } = request.query;
    const name = names.login(typeof state === 'string' ? state : '');
    const [sealed] = core.http.cookieValues(request.headers.cookie, name);
    const pending = sealed === undefined ? null : openLogin(core.loginKey, sealed, core.clock());
    // One use, whatever comes of it.
    if (sealed !== undefined) response.append('set-cookie', setCookie(name, '', 0, names.secure));
    // The answer to nobody's question, or to a stranger's (login CSRF).
    if (!pending || pending.state !== state) throw new LoginRefused('not-yours');
    // The query alone is the browser's: a request line may name any host (RFC 9112 section 3.2.2).
    const callback = new URL('/console/callback', core.origin());
    callback.search = /\?.*$/s.exec(request.originalUrl)?.[0] ?? '';
    const { state: sent, nonce, verifier, back, switching } = pending;
    const begun = { state: sent, nonce, verifier };
    const signedIn = await login.finish(callback, begun).catch((error: unknown) => {
      const refused = error instanceof LoginRefused && error.fault === 'provider-refused';
      if (refused && switching === 'select_account') return null;
      throw error;
    });
    // Not every provider knows how to choose an account; each can ask for a sign-in.
    if (!signedIn) {
      response.redirect(303, `/console/login?switch=login&back=${encodeURIComponent(back)}`);
      return;
    }
    if (!signedIn.ok) {
      fail(response, signedIn.why, 403);
      return;
    }
    // Whoever signs in anew has no use for the session before.
    const [old] = core.http.cookieValues(request.headers.cookie, names.session);
    const before = old === undefined || old.length > 128 ? null : await core.sessions.find(old);
    if (before) await core.sessions.end(before);
    const cookie = setCookie(names.session, signedIn.token, CONSOLE_ABSOLUTE_MS, names.secure);
    response.append('set-cookie', cookie).set({ 'cache-control': 'no-store' }).redirect(303, back);
  }

  router.get('/callback', async (request, response) => {
    if (unconfigured(response)) return;
    try {
      await comeBack(request, response);
    } catch (error) {
      if (error instanceof LoginRefused) fail(response, error.fault, error.fault === 'cancelled' ? 403 : 400);
      else if (error instanceof Unavailable) fail(response, 'provider-down', 503);
      else throw error;
    }
  });

  router.post(
    '/logout',
    desk.action('reviewer', async ({ response, session }) => {
      await core.sessions.end(session);
      const names = cookieNames(core.origin());
      response.append('set-cookie', setCookie(names.session, '', 0, names.secure));
      response.locals['staff'] = null;
      // A link and not a redirect: `form-action` keeps a form's way within this origin (CSP level 3), and a provider that
      // does not know the way back here shows a fault of its own to whoever did not ask for more.
      render(response, 'signed-out', { provider: await login.leave(session) });
    }),
  );

  // The way back from the provider. A visitor who is still signed in has not signed out.
  router.get('/signed-out', async (request, response) => {
    if (await desk.isSignedIn(request)) response.redirect(303, '/console');
    else render(response, 'signed-out', { provider: null });
  });

  router.get(
    '/help',
    desk.page('reviewer', ({ response }) => Promise.resolve(render(response, 'help'))),
  );

  router.get(
    '/sessions',
    desk.page('reviewer', async ({ response, staff, session, request }) => {
      const sessions = await core.sessions.list(staff, session);
      render(response, 'sessions', { here: 'sessions', sessions, done: request.query['done'] === 'revoked' });
    }),
  );

  router.post(
    '/sessions/revoke',
    desk.action('reviewer', async ({ response, staff, form }) => {
      const ended = await core.sessions.revoke(staff, form.get('id') ?? '');
      response.redirect(303, `/console/sessions${ended ? '?done=revoked' : ''}`);
    }),
  );
}
