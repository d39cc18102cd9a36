import type { Request, Response, Router } from 'express';
import { type Ceremony, readCredential } from '../attest/ceremony.ts';
import { createConsoleToken, LoginRefused } from '../auth/credentials.ts';
import { limitClients } from '../http/express-app.ts';
import { Refusal, tryOr } from '../lib/errors.ts';
import type { Context } from './context-service.ts';
import { sanitiseBack } from './cookies.ts';
import { beginSignIn, showUnconfigured, startSession, takeSignIn, takesPasskeys } from './entry-pages.ts';
import { isSameOrigin, readForm } from './form.ts';
import { joinByPasskey, offerPasskey, signInByPasskey } from './passkey-service.ts';

/** The pages on which staff sign in with a passkey, or register one with an invitation. */

/** Each page has a separate challenge and cookie, so that two tabs do not disturb each other. */
export function showPasskey(
  context: Context,
  request: Request,
  response: Response,
  ceremony: Ceremony,
): void {
  const challenge = createConsoleToken(context.random);
  const offer = offerPasskey(context, challenge, ceremony);
  if (offer) beginSignIn(context, request, response, { kind: ceremony, id: challenge });
  const back = sanitiseBack(request.query['back']);
  context.render(response, 'passkey', { offer, back, origin: context.origin() }, offer ? 200 : 503);
}

/**
 * @returns true if it showed a page with the reason
 * @throws {Refusal} `not-found` if an identity provider is configured
 */
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

/** Takes the browser's answer to a sign-in or to an invitation. */
async function takePasskey(context: Context, request: Request, response: Response): Promise<void> {
  if (!isSameOrigin(request, context.origin())) throw new Refusal('origin-not-allowed');
  if (await refusePasskeys(context, response)) return;
  const form = await readForm(request);
  const answer = readCredential(tryOr((): unknown => JSON.parse(form.get('answer') ?? ''), null));
  const invitation = form.get('invitation');
  try {
    if (!answer) throw new LoginRefused('passkey');
    await takeSignIn(context, request, response, { kind: answer.ceremony, id: answer.challenge });
    const token = await (invitation === undefined
      ? signInByPasskey(context, answer)
      : joinByPasskey(context, answer, invitation));
    await startSession(context, request, response, { token, back: sanitiseBack(form.get('back')) });
  } catch (error) {
    if (!(error instanceof LoginRefused)) throw error;
    context.render(response, 'sign-in', { why: error.fault }, 400);
  }
}

/** Pages that need no session. */
export function registerPasskeyPages(router: Router, context: Context): void {
  const limit = limitClients(context.signInLimits.limiter);
  router.get('/join', limit, (request, response) => showJoin(context, request, response));
  router.post('/passkey', limit, (request, response) => takePasskey(context, request, response));
}
