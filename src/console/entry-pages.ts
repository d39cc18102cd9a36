import type { Request, Response } from 'express';
import { CONSOLE_ABSOLUTE_MS, LoginRefused } from '../auth/credentials.ts';
import { cookieValues, cookieNames as sentNames } from '../http/request.ts';
import type { Context } from './context-service.ts';
import {
  canServe,
  cookieNames,
  decryptPending,
  encryptPending,
  formatCookie,
  PENDING_MS,
  type PendingSignIn,
  type SignInDetails,
  type SignInId,
} from './cookies.ts';
import { findCookieSession } from './session-guard-service.ts';
import { endSession } from './sessions-service.ts';
import { missingConsoleSettings } from './sign-in-service.ts';

/** The steps that all sign-ins share, with an identity provider or with passkeys. */

/** Passkeys are used if no identity provider is configured and someone was invited. */
export const takesPasskeys = async ({ config, hasStaff }: Context): Promise<boolean> =>
  config.oidc_issuer === null && (await hasStaff());

/** @returns true if it showed a page that says why nobody can sign in */
export function showUnconfigured(
  { config, origin, render }: Context,
  response: Response,
  usesPasskeys = false,
): boolean {
  const missing = usesPasskeys ? [] : missingConsoleSettings(config);
  if (missing.length > 0) render(response, 'setup', { missing }, 503);
  else if (!canServe(origin())) render(response, 'insecure', { origin: origin() }, 503);
  else return false;
  return true;
}

/** Pending sign-ins per browser. */
const MAX_PENDING = 8;

/** Sets the cookie of a sign-in that this browser begins. */
export function beginSignIn(
  { keys, random, clock, origin }: Context,
  request: Request,
  response: Response,
  which: SignInId,
  details: SignInDetails | null = null,
): void {
  const names = cookieNames(origin());
  const lifeMs = PENDING_MS[which.kind];
  const cookie = encryptPending(keys.login, random, which, { expiresAt: clock() + lifeMs, details });
  // Another site can make this browser begin many sign-ins:
  // their cookies must not exceed the size limit of headers.
  const pending = sentNames(request.headers.cookie).filter((name) => name.startsWith(names.login('')));
  for (const name of pending.length < MAX_PENDING ? [] : pending)
    response.append('set-cookie', formatCookie(name, '', 0, names.secure));
  response.append('set-cookie', formatCookie(names.login(which.id), cookie, lifeMs, names.secure));
}

/**
 * @returns the sign-in that this browser began, whose cookie is deleted
 * @throws {LoginRefused} `not-yours` if it began none of this kind and id, or it expired or was answered
 */
export async function takeSignIn(
  { keys, clock, origin, signInLimits }: Context,
  request: Request,
  response: Response,
  which: SignInId,
): Promise<PendingSignIn> {
  const names = cookieNames(origin());
  const name = names.login(which.id);
  const [cookie] = cookieValues(request.headers.cookie, name);
  // The cookie works once, whatever the result; isFirstUse below refuses a client that keeps it.
  if (cookie !== undefined) response.append('set-cookie', formatCookie(name, '', 0, names.secure));
  const pending = decryptPending(keys.login, which, cookie ?? '', clock());
  // This browser did not begin the sign-in: someone else's answer is being planted (login CSRF).
  if (!pending || !(await signInLimits.isFirstUse(which.id, pending.expiresAt)))
    throw new LoginRefused('not-yours');
  return pending;
}

/** Sets the cookie of a new session. The previous session of this browser ends. */
export async function startSession(
  context: Context,
  request: Request,
  response: Response,
  { token, back }: Readonly<Record<'token' | 'back', string>>,
): Promise<void> {
  const previousSession = await findCookieSession(context, request);
  if (previousSession) await endSession(context, previousSession);
  const names = cookieNames(context.origin());
  const cookie = formatCookie(names.session, token, CONSOLE_ABSOLUTE_MS, names.secure);
  response.append('set-cookie', cookie).set({ 'cache-control': 'no-store' }).redirect(303, back);
}
