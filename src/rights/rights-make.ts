import type { RoutesDeps } from '../app/routes.ts';
import { type MeDeps, makeMeService } from './me/service.ts';
import { makeAuthenticator, type OidcSettings } from './oidc.ts';
import { makeRightsApi, type RightsApiDeps } from './service.ts';

/** The rights half, loaded with the pages it serves and not before the hot lanes answer. */
export function wireRights(
  config: OidcSettings & { readonly k_anonymity_floor: number },
  deps: RightsApiDeps &
    Pick<MeDeps, 'serverSecret'> &
    Pick<RoutesDeps['rights'], 'limiter' | 'knowsOrigin'> & { readonly onFault: (error: unknown) => void },
): RoutesDeps['rights'] {
  const { limiter, knowsOrigin, clock, onFault } = deps;
  return {
    limiter,
    knowsOrigin,
    authenticate: makeAuthenticator(config, clock, onFault),
    api: makeRightsApi(deps),
    me: makeMeService({ ...deps, kAnonymityFloor: config.k_anonymity_floor }),
  };
}
