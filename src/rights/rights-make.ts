import type { KnowsOrigin } from '../http/cors.ts';
import type { Limiter } from '../http/hot.ts';
import { type MeDeps, type MeService, makeMeService } from './me/service.ts';
import { type Authenticate, makeAuthenticator, type OidcSettings } from './oidc.ts';
import type { RightsApi } from './service.ts';

export interface Rights {
  readonly limiter: Limiter;
  readonly authenticate: Authenticate;
  readonly api: RightsApi;
  readonly me: MeService;
  readonly knowsOrigin: KnowsOrigin;
}

/** What only routes need, loaded with them and not before the hot lanes answer. */
export function wireRights(
  config: OidcSettings & { readonly k_anonymity_floor: number },
  deps: Omit<MeDeps, 'kAnonymityFloor'> &
    Pick<Rights, 'api' | 'limiter' | 'knowsOrigin'> & { readonly onFault: (error: unknown) => void },
): Rights {
  const { limiter, knowsOrigin, clock, onFault } = deps;
  return {
    limiter,
    knowsOrigin,
    authenticate: makeAuthenticator(config, clock, onFault),
    api: deps.api,
    me: makeMeService({ ...deps, kAnonymityFloor: config.k_anonymity_floor }),
  };
}
