import { AGENT_ROUTES } from './agent-routes.ts';
import { CONSENT_ROUTES } from './consent-routes.ts';
import { LEDGER_ROUTES } from './ledger-routes.ts';
import { PUBLIC_ROUTES } from './public-routes.ts';
import { RIGHTS_ROUTES } from './rights-routes.ts';
import type { Cors, Route } from './route.ts';

/**
 * The table of routes: handlers, credentials, CORS, the 405s and the OpenAPI document are made from it. A
 * row's name is its operationId.
 */
export const ROUTES = {
  ...PUBLIC_ROUTES,
  ...RIGHTS_ROUTES,
  ...CONSENT_ROUTES,
  ...AGENT_ROUTES,
  ...LEDGER_ROUTES,
} as const;

export type Routes = typeof ROUTES;
export type RouteName = keyof Routes;

export const ROUTE_NAMES = Object.keys(ROUTES) as readonly RouteName[];
export const ALL_ROUTES: readonly Route[] = Object.values(ROUTES);

const METHODS = { get: ['GET', 'HEAD'], post: ['POST'], put: ['PUT'] } as const;

/** The methods in `Allow` for a path of the table. */
export function allowedMethods(path: string): readonly string[] {
  const rows = ALL_ROUTES.filter((route) => route.path === path);
  const preflight = rows.some(({ cors }) => cors === 'ingest' || cors === 'api');
  return [...rows.flatMap(({ method }) => METHODS[method]), ...(preflight ? ['OPTIONS'] : [])];
}

/** The methods and headers that a preflight of these rows allows. */
export function preflightAllows(cors: Cors): { readonly methods: string; readonly headers: string } {
  const rows = ALL_ROUTES.filter((route) => route.cors === cors);
  const methods = ['get', 'post', 'put'].filter((method) => rows.some((route) => route.method === method));
  const named = rows.flatMap(({ headers = {} }) => Object.keys(headers));
  const headers = [
    ...(rows.some(({ credential }) => credential !== 'none' && credential !== 'kid')
      ? ['Authorization']
      : []),
    ...(rows.some(({ request }) => request !== undefined) ? ['Content-Type'] : []),
    ...new Set(named.map(headerName)),
  ];
  return { methods: methods.join(', ').toUpperCase(), headers: headers.join(', ') };
}

/** `idempotency-key` as documents write it: `Idempotency-Key`. */
export function headerName(name: string): string {
  return name.replace(/(?<![a-z])[a-z]/g, (letter) => letter.toUpperCase());
}
