import type { Request, Response } from 'express';
import { CONSOLE_ABSOLUTE_MS } from '../auth/credentials.ts';
import type { Context } from './context-service.ts';
import { canServe, cookieNames, formatCookie } from './cookies.ts';
import { findCookieSession } from './session-guard-service.ts';
import { endSession } from './sessions-service.ts';
import { missingConsoleSettings } from './sign-in-service.ts';

/** The first and the last step that all sign-ins share, with an identity provider or with passkeys. */

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
