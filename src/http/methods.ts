import { Router } from 'express';
import { Refusal } from '../lib/errors.ts';
import type { Route } from '../schema/route.ts';
import { ALL_ROUTES, allowedMethods } from '../schema/routes.ts';
import { open } from './cors.ts';

/** The path of a row as Express spells it. */
export function expressPath({ path, rest }: Route): string {
  return path.replace(/\{(\w+)\}/g, (_all, name: string) => (name === rest ? `*${name}` : `:${name}`));
}

/** Behind the handlers of a router: every path of the table answers 405 to the methods that none of its rows has. */
export function refuseOtherMethods(router: Router): void {
  for (const route of ALL_ROUTES.filter(({ lane }) => lane !== true)) {
    const headers = {
      allow: allowedMethods(route.path).join(', '),
      ...(route.cors === 'open' ? open : {}),
    };
    router.all(expressPath(route), () => {
      throw new Refusal('method-not-allowed', { headers });
    });
  }
}

/** Paths are compared by case: a proxy that keeps /console from strangers has to keep /CONSOLE from them as well. */
export function exactRouter(): Router {
  return Router({ caseSensitive: true });
}
