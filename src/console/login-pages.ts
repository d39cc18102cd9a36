import type { Request, Response, Router } from 'express';
import { type LoginFault, LoginRefused, mayOpen, type SignInPrompt } from '../auth/credentials.ts';
import { limitClients } from '../http/express-app.ts';
import { Unavailable } from '../lib/errors.ts';
import { chosenLanguage } from '../lib/languages.ts';
import type { Context } from './context-service.ts';
import { cookieNames, formatCookie, sanitiseBack } from './cookies.ts';
import { beginSignIn, showUnconfigured, startSession, takeSignIn, takesPasskeys } from './entry-pages.ts';
import { redirectDone, takeFlash } from './flash.ts';
import { registerPasskeyPages, showPasskey } from './passkey-pages.ts';
import { type ConsoleVisit, type FormVisit, isSignedIn, type PageTable } from './session-guard-service.ts';
import { endSession, listSessions, revokeSession } from './sessions-service.ts';
import { finishSignIn, signOutAddress } from './sign-in-service.ts';

/**
 * Sign-in with an identity provider, sign-out, and the list
 * of sessions. Each failure has a page that says what to do.
 */

const readPrompt = (value: unknown): SignInPrompt | null =>
  value === 'select_account' || value === 'login' ? value : null;

/**
 * The provider sends everyone back to the public origin, so the cookie must be set there.
 * `here=1` allows one such redirect only, because a proxy that changes Host would cause a loop.
 * @returns the address of the sign-in at the public origin; null if the browser is there already
 */
function findPublicSignIn(publicOrigin: string, { headers, query }: Request): string | null {
  const { host, origin } = new URL(publicOrigin);
  if (headers.host === host || query['here'] !== undefined) return null;
  const back = encodeURIComponent(sanitiseBack(query['back']));
  const prompt = readPrompt(query['switch']);
  const switchParameter = prompt === null ? '' : `&switch=${prompt}`;
  const language = chosenLanguage(query['lang']);
  const langParameter = language === null ? '' : `&lang=${language}`;
  return `${origin}/console/login?here=1&back=${back}${switchParameter}${langParameter}`;
}

async function goToProvider(context: Context, request: Request, response: Response): Promise<void> {
  const prompt = readPrompt(request.query['switch']);
  const { url, state, nonce, verifier } = await (await context.provider()).begin(prompt);
  const back = sanitiseBack(request.query['back']);
  const which = { kind: 'provider', id: state } as const;
  beginSignIn(context, request, response, which, { nonce, verifier, back, prompt });
  response.set({ 'cache-control': 'no-store' }).redirect(302, url);
}

async function signIn(context: Context, request: Request, response: Response): Promise<void> {
  const usesPasskeys = await takesPasskeys(context);
  if (showUnconfigured(context, response, usesPasskeys)) return;
  const address = findPublicSignIn(context.origin(), request);
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

async function finishCallback(context: Context, request: Request, response: Response): Promise<void> {
  const { state } = request.query;
  const which = { kind: 'provider', id: typeof state === 'string' ? state : '' } as const;
  const { details } = await takeSignIn(context, request, response, which);
  if (!details) throw new LoginRefused('not-yours');
  const { back, prompt, nonce, verifier } = details;
  // Only the query is taken from the request, because a
  // request line may name any host (RFC 9112 section 3.2.2).
  const callback = new URL('/console/callback', context.origin());
  callback.search = /\?.*$/s.exec(request.originalUrl)?.[0] ?? '';
  const signedIn = await finishSignIn(context, callback, { state: which.id, nonce, verifier }).catch(
    (error: unknown) => {
      const refused = error instanceof LoginRefused && error.fault === 'provider-refused';
      if (refused && prompt === 'select_account') return null;
      throw error;
    },
  );
  // Some providers do not support select_account, but all support login.
  if (!signedIn) {
    response.redirect(303, `/console/login?switch=login&back=${encodeURIComponent(back)}`);
    return;
  }
  if (!signedIn.ok) {
    context.render(response, 'sign-in', { why: signedIn.reason }, 403);
    return;
  }
  await startSession(context, request, response, { token: signedIn.token, back });
}

const FAULT_STATUS: Partial<Record<LoginFault, number>> = { cancelled: 403, userinfo: 503 };

async function showCallback(context: Context, request: Request, response: Response): Promise<void> {
  if (showUnconfigured(context, response)) return;
  const fail = (problem: string, status: number): void =>
    context.render(response, 'sign-in', { why: problem }, status);
  try {
    await finishCallback(context, request, response);
  } catch (error) {
    if (error instanceof LoginRefused) fail(error.fault, FAULT_STATUS[error.fault] ?? 400);
    else if (error instanceof Unavailable) fail('provider-down', 503);
    else throw error;
  }
}

async function signOut({ context, response, session }: FormVisit): Promise<void> {
  await endSession(context, session);
  const names = cookieNames(context.origin());
  response.append('set-cookie', formatCookie(names.session, '', 0, names.secure));
  response.locals['staff'] = null;
  // The page has a link instead of redirecting: `form-action` forbids a form to
  // redirect to another origin (CSP level 3), and a provider without the return
  // address shows an error page to a person who only wanted to sign out here.
  context.render(response, 'signed-out', { provider: await signOutAddress(context, session) });
}

async function showSessions(visit: ConsoleVisit): Promise<void> {
  const { context, response, staff, session } = visit;
  const sessions = await listSessions(context, staff, session);
  const done = takeFlash(visit)?.done === 'revoked';
  context.render(response, 'sessions', { here: 'sessions', sessions, done });
}

async function revokeFromForm(visit: FormVisit): Promise<void> {
  const { context, response, staff, form } = visit;
  const isEnded = await revokeSession(context, staff, form.get('id') ?? '');
  if (isEnded) redirectDone(visit, '/console/sessions', 'revoked');
  else response.redirect(303, '/console/sessions');
}

function goHome({ response, staff }: ConsoleVisit): void {
  response.redirect(303, `/console/${mayOpen(staff.role, 'reviewer') ? 'queue' : 'overview'}`);
}

/** Pages that need no session. */
export function registerOpenPages(router: Router, context: Context): void {
  const limit = limitClients(context.signInLimits.limiter);
  router.get('/login', limit, (request, response) => signIn(context, request, response));
  router.get('/callback', limit, (request, response) => showCallback(context, request, response));
  registerPasskeyPages(router, context);
  // The provider sends the browser here after a sign-out. A visitor who still has a session did not sign out.
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
  forms: { '/logout': ['staff', signOut], '/sessions/revoke': ['staff', revokeFromForm] },
};
