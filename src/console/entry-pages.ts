import type { Request, Response } from 'express';
import { CONSOLE_ABSOLUTE_MS } from '../auth/credentials.ts';
import type { Context } from './context.ts';
import { cookieNames, mayServe, setCookie } from './cookies.ts';
import { sessionOf } from './session-guard.ts';
import { endSession } from './sessions-service.ts';
import { missingConsoleSettings } from './sign-in-service.ts';

/** The parts that every sign-in has: whether there can be one, and how it ends. */

/** Staff sign in with passkeys: no identity provider is set, and somebody was invited. */
export const takesPasskeys = async ({ config, hasStaff }: Context): Promise<boolean> =>
  config.oidc_issuer === null && (await hasStaff());

/** @returns true when the page was shown */
export function showUnconfigured(
  { config, origin, render }: Context,
  response: Response,
  usesPasskeys = false,
): boolean {
  const missing = usesPasskeys ? [] : missingConsoleSettings(config);
  if (missing.length > 0) render(response, 'setup', { missing }, 503);
  else if (!mayServe(origin())) render(response, 'insecure', { origin: origin() }, 503);
  else return false;
  return true;
}

/** A new sign-in ends the previous session of this browser. */
export async function enter(
  context: Context,
  request: Request,
  response: Response,
  { token, back }: Readonly<Record<'token' | 'back', string>>,
): Promise<void> {
  const before = await sessionOf(context, request);
  if (before) await endSession(context, before);
  const names = cookieNames(context.origin());
  const cookie = setCookie(names.session, token, CONSOLE_ABSOLUTE_MS, names.secure);
  response.append('set-cookie', cookie).set({ 'cache-control': 'no-store' }).redirect(303, back);
}
