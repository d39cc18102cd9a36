import type { RequestHandler } from 'express';
import { Refusal } from '../lib/errors.ts';

/** Open to every origin: nothing of it depends on who asks. */
export const open = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
} as const;

/** The last handler of a route: every other method is answered 405 with what is allowed. */
export function onlyMethods(...allowed: readonly string[]): RequestHandler {
  return refuseBut(allowed, {});
}

/** The same of what is {@link open} to every origin, and so on errors too. */
export function openMethods(...allowed: readonly string[]): RequestHandler {
  return refuseBut(allowed, open);
}

function refuseBut(allowed: readonly string[], more: Readonly<Record<string, string>>): RequestHandler {
  const headers = { allow: allowed.join(', '), ...more };
  return () => {
    throw new Refusal('method-not-allowed', { headers });
  };
}
