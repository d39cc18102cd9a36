import type { Request, Response, Router } from 'express';
import { type LoginFault, LoginRefused, mayOpen, type SignInPrompt } from '../auth/credentials.ts';
import { limitClients } from '../http/register.ts';
import { cookieValues, cookieNames as sentNames } from '../http/request.ts';
import { Unavailable } from '../lib/errors.ts';
import type { Context } from './context.ts';
import {
  cookieNames,
  decryptLogin,
  encryptLogin,
  LOGIN_MS,
  type PendingLogin,
  safeBack,
  setCookie,
} from './cookies.ts';
import { enter, showUnconfigured, takesPasskeys } from './entry-pages.ts';
import { passkeyPages, showPasskey } from './passkey-pages.ts';
import { type ConsoleVisit, isSignedIn, type PageTable, type Posted } from './session-guard.ts';
import { endSession, listSessions, revokeSession } from './sessions-service.ts';
import { finishSignIn, signOutAddress } from './sign-in-service.ts';

/** Sign-in and sign-out. Everything that can go wrong has a page that says what to do. */

/** Sign-ins that may be under way in one browser. */
const MAX_PENDING = 8;

const stale = (all: readonly string[], prefix: string): readonly string[] => {
  const pending = all.filter((name) => name.startsWith(prefix));
  return pending.length < MAX_PENDING ? [] : pending;
};

const readSwitching = (value: unknown): SignInPrompt | null =>
  value === 'select_account' || value === 'login' ? value : null;

/** The provider sends everyone back to the public origin: the cookie has to be there. Once, or a proxy makes a loop. */
function elsewhere(publicOrigin: string, { headers, query }: Request): string | null {
  const { host, origin } = new URL(publicOrigin);
  if (headers.host === host || query['here'] !== undefined) return null;
  const back = encodeURIComponent(safeBack(query['back']));
  const switching = readSwitching(query['switch']);
  const more = switching === null ? '' : `&switch=${switching}`;
  return `${origin}/console/login?here=1&back=${back}${more}`;
}

async function goToProvider(context: Context, request: Request, response: Response): Promise<void> {
  const switching = readSwitching(request.query['switch']);
  const { url, ...begun } = await (await context.provider()).begin(switching);
  const names = cookieNames(context.origin());
  const pending = { ...begun, switching, back: safeBack(request.query['back']) };
  const cookie = encryptLogin(context.keys.login, context.random, pending, context.clock());
  // Another site may begin sign-ins without end: their cookies together must not outgrow a request's headers.
  for (const name of stale(sentNames(request.headers.cookie), names.login('')))
    response.append('set-cookie', setCookie(name, '', 0, names.secure));
  response.append('set-cookie', setCookie(names.login(begun.state), cookie, LOGIN_MS, names.secure));
  response.set({ 'cache-control': 'no-store' }).redirect(302, url);
}

async function signIn(context: Context, request: Request, response: Response): Promise<void> {
  const usesPasskeys = await takesPasskeys(context);
  if (showUnconfigured(context, response, usesPasskeys)) return;
  const address = elsewhere(context.origin(), request);
  if (address !== null) {
    response.redirect(302, address);
    return;
  }
  if (usesPasskeys) {
    showPasskey(context, request, response, 'get');
    return;
  }
  try {
    await goToProvider(context, request, response);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    response.set('retry-after', String(error.retryAfterSeconds));
    context.render(response, 'sign-in', { why: 'provider-down' }, 503);
  }
}

/** The sign-in that this browser began; its cookie is deleted. @throws {LoginRefused} `not-yours` */
async function takePending(context: Context, request: Request, response: Response): Promise<PendingLogin> {
  const names = cookieNames(context.origin());
  const { state } = request.query;
  const name = names.login(typeof state === 'string' ? state : '');
  const [cookie] = cookieValues(request.headers.cookie, name);
  const pending = cookie === undefined ? null : decryptLogin(context.keys.login, cookie, context.clock());
  // One use, whatever the result; a client that keeps the cookie gets the refusal below.
  if (cookie !== undefined) response.append('set-cookie', setCookie(name, '', 0, names.secure));
  // The answer to nobody's question, or to a stranger's (login CSRF).
  if (!pending || pending.state !== state) throw new LoginRefused('not-yours');
  const { expiresAt, ...begun } = pending;
  if (!(await context.signInLimits.isFirstUse(begun.state, expiresAt))) throw new LoginRefused('not-yours');
  return begun;
}

async function comeBack(context: Context, request: Request, response: Response): Promise<void> {
  const { back, switching, ...begun } = await takePending(context, request, response);
  // The query alone is the browser's: a request line may name any host (RFC 9112 section 3.2.2).
  const callback = new URL('/console/callback', context.origin());
  callback.search = /\?.*$/s.exec(request.originalUrl)?.[0] ?? '';
  const signedIn = await finishSignIn(context, callback, begun).catch((error: unknown) => {
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
    context.render(response, 'sign-in', { why: signedIn.why }, 403);
    return;
  }
  await enter(context, request, response, { token: signedIn.token, back });
}

const STATUS: Partial<Record<LoginFault, number>> = { cancelled: 403, userinfo: 503 };

async function callBack(context: Context, request: Request, response: Response): Promise<void> {
  if (showUnconfigured(context, response)) return;
  const fail = (why: string, status: number): void => context.render(response, 'sign-in', { why }, status);
  try {
    await comeBack(context, request, response);
  } catch (error) {
    if (error instanceof LoginRefused) fail(error.fault, STATUS[error.fault] ?? 400);
    else if (error instanceof Unavailable) fail('provider-down', 503);
    else throw error;
  }
}

async function signOut({ context, response, session }: Posted): Promise<void> {
  await endSession(context, session);
  const names = cookieNames(context.origin());
  response.append('set-cookie', setCookie(names.session, '', 0, names.secure));
  response.locals['staff'] = null;
  // A link and not a redirect: `form-action` keeps a form's way within this origin (CSP level 3), and a provider that
  // does not know the way back here shows its own error page to a person who only wanted to sign out here.
  context.render(response, 'signed-out', { provider: await signOutAddress(context, session) });
}

async function showSessions({ context, response, staff, session, request }: ConsoleVisit): Promise<void> {
  const sessions = await listSessions(context, staff, session);
  const done = request.query['done'] === 'revoked';
  context.render(response, 'sessions', { here: 'sessions', sessions, done });
}

async function revoke({ context, response, staff, form }: Posted): Promise<void> {
  const ended = await revokeSession(context, staff, form.get('id') ?? '');
  response.redirect(303, `/console/sessions${ended ? '?done=revoked' : ''}`);
}

function goHome({ response, staff }: ConsoleVisit): void {
  response.redirect(303, `/console/${mayOpen(staff.role, 'reviewer') ? 'queue' : 'overview'}`);
}

/** Pages that need no session. */
export function openPages(router: Router, context: Context): void {
  const limit = limitClients(context.signInLimits.limiter);
  router.get('/login', limit, (request, response) => signIn(context, request, response));
  router.get('/callback', limit, (request, response) => callBack(context, request, response));
  passkeyPages(router, context);
  // The way back from the provider. A visitor who is still signed in has not signed out.
  router.get('/signed-out', async (request, response) => {
    if (await isSignedIn(context, request)) response.redirect(303, '/console');
    else context.render(response, 'signed-out', { provider: null });
  });
}

export const sessionPages: PageTable = {
  pages: {
    '/': ['staff', goHome],
    '/help': ['staff', ({ context, response }) => context.render(response, 'help')],
    '/sessions': ['staff', showSessions],
  },
  forms: { '/logout': ['staff', signOut], '/sessions/revoke': ['staff', revoke] },
};
