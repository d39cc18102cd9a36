import type { Request, Response, Router } from 'express';
import type { Ceremony } from '../attest/ceremony.ts';
import { createConsoleToken, LoginRefused } from '../auth/credentials.ts';
import { limitClients } from '../http/register.ts';
import { cookieValues } from '../http/request.ts';
import { Refusal } from '../lib/errors.ts';
import type { Context } from './context.ts';
import { cookieNames, LOGIN_MS, safeBack, setCookie } from './cookies.ts';
import { enter, showUnconfigured, takesPasskeys } from './entry-pages.ts';
import { isSameOrigin, readForm } from './form.ts';
import { joinByPasskey, offerPasskey, signInByPasskey } from './passkey-service.ts';

/** Sign-in of staff with a passkey, and the invitation that makes one. */

const PASSKEY = 'passkey';

/** The browser's own secret, which its answer has to come with: the one that it has, so that two tabs do not spoil each other's. */
export function showPasskey(
  context: Context,
  request: Request,
  response: Response,
  ceremony: Ceremony,
): void {
  const names = cookieNames(context.origin());
  const name = names.login(PASSKEY);
  const cookie = cookieValues(request.headers.cookie, name)[0] ?? createConsoleToken(context.random);
  const offer = offerPasskey(context, cookie, ceremony);
  response.append('set-cookie', setCookie(name, cookie, LOGIN_MS, names.secure));
  const back = safeBack(request.query['back']);
  context.render(response, 'passkey', { offer, back, origin: context.origin() }, offer ? 200 : 503);
}

/** @returns true when a page says why @throws {Refusal} where an identity provider signs people in */
async function refusePasskeys(context: Context, response: Response): Promise<boolean> {
  const usesPasskeys = await takesPasskeys(context);
  if (showUnconfigured(context, response, usesPasskeys)) return true;
  if (!usesPasskeys) throw new Refusal('not-found');
  return false;
}

async function showJoin(context: Context, request: Request, response: Response): Promise<void> {
  if (await refusePasskeys(context, response)) return;
  showPasskey(context, request, response, 'create');
}

/** The answer of the browser, to the sign-in or to an invitation. */
async function takePasskey(context: Context, request: Request, response: Response): Promise<void> {
  if (!isSameOrigin(request, context.origin())) throw new Refusal('origin-not-allowed');
  if (await refusePasskeys(context, response)) return;
  const form = await readForm(request);
  const [cookie] = cookieValues(request.headers.cookie, cookieNames(context.origin()).login(PASSKEY));
  const answer = form.get('answer') ?? '';
  const invitation = form.get('invitation');
  try {
    if (cookie === undefined) throw new LoginRefused('not-yours');
    const token = await (invitation === undefined
      ? signInByPasskey(context, cookie, answer)
      : joinByPasskey(context, cookie, { invitation, answer }));
    await enter(context, request, response, { token, back: safeBack(form.get('back')) });
  } catch (error) {
    if (!(error instanceof LoginRefused)) throw error;
    context.render(response, 'sign-in', { why: error.fault }, 400);
  }
}

/** Pages that need no session. */
export function passkeyPages(router: Router, context: Context): void {
  const limit = limitClients(context.signInLimits.limiter);
  router.get('/join', limit, (request, response) => showJoin(context, request, response));
  router.post('/passkey', limit, (request, response) => takePasskey(context, request, response));
}
