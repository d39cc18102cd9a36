import type { RequestHandler } from 'express';
import { Refusal } from '../../lib/errors.ts';

/** The last handler of a route: every other method is answered 405 with what is allowed. */
export function onlyMethods(...allowed: readonly string[]): RequestHandler {
  const allow = allowed.join(', ');
  return () => {
    throw new Refusal('method-not-allowed', { headers: { allow } });
  };
}
