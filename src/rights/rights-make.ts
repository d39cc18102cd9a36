import type { KnowsOrigin } from '../http/reply.ts';
import type { Limiter } from '../http/request.ts';
import { SECOND } from '../lib/clock.ts';
import { type CaseDeps, makeCaseService } from './contests/case-service.ts';
import { makeSendExport } from './export-routes.ts';
import { type MeDeps, makeMeService } from './me/service.ts';
import { makeAuthenticator, type OidcSettings } from './oidc.ts';
import { makeOutcomeReporter } from './outcomes.ts';
import type { RightsApi } from './service.ts';

export type Rights = ReturnType<typeof wireRights>;

/** What only routes need, loaded with them and not before the hot lanes answer. */
export function wireRights(
  config: OidcSettings & { readonly k_anonymity_floor: number; readonly max_clock_skew: number },
  deps: Omit<MeDeps, 'kAnonymityFloor' | 'cases'> &
    Omit<CaseDeps, 'contests'> & {
      readonly api: RightsApi;
      readonly limiter: Limiter;
      readonly knowsOrigin: KnowsOrigin;
      readonly onFault: (error: unknown) => void;
    },
) {
  const { limiter, knowsOrigin, clock, onFault } = deps;
  const cases = makeCaseService({ ...deps, contests: deps.api.contests });
  return {
    limiter,
    knowsOrigin,
    authenticate: makeAuthenticator(config, clock, onFault),
    api: deps.api,
    /** The places of all routes that send one. */
    sendExport: makeSendExport(),
    cases,
    reportOutcome: makeOutcomeReporter(deps.database, clock, config.max_clock_skew * SECOND),
    me: makeMeService({ ...deps, cases, kAnonymityFloor: config.k_anonymity_floor }),
  };
}
