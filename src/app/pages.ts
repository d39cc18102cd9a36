import type { Router } from 'express';
import type { ConsentApi } from '../consent/consent-make.ts';
import type { IssueToken } from '../ingest/ports.ts';
import { makeDaySalt } from '../ops/limits.ts';
import type { RightsServices } from '../rights/services-make.ts';
import { VERSION } from '../version.ts';
import type { Platform } from './platform.ts';
import type { RoutesDeps } from './routes.ts';

export interface PagesNeeds extends Pick<RoutesDeps, 'notReady' | 'swept' | 'findDecision'> {
  readonly consent: ConsentApi;
  readonly rights: RightsServices;
  readonly clientSecret: string | null;
  readonly issueToken: IssueToken;
  readonly extra: readonly Router[];
}

/** Express and all that it serves. Loaded while the server starts, not before: the hot lanes answer first. */
export async function loadPages(platform: Platform, needs: PagesNeeds) {
  const { config, directory, address, limiters, logFault, onFault } = platform;
  const { consent, clientSecret, extra, issueToken, rights: services, ...rest } = needs;
  const { makeRoutes } = await import('./routes.ts');
  const { makeAttest } = await import('./attest.ts');
  const { wireRights } = await import('../rights/rights-make.ts');
  const { makeConsole } = await import('../console/console-routes.ts');
  const origin = (): string => new URL(address.url).origin;
  const console = makeConsole(config, {
    ...platform,
    log: consent.log,
    clientSecret,
    rights: services,
    origin,
  });
  const rights = wireRights(config, {
    ...platform,
    ...services,
    limiter: limiters.privacy,
    markNetwork: makeDaySalt(platform.serverSecret, 'gpd/cases/v1', platform.clock),
    onFault: logFault('oidc-failed'),
  });
  const attest = makeAttest(config, { ...platform, check: consent.consent.check, issueToken });
  return makeRoutes({
    ...rest,
    attest,
    version: VERSION,
    sites: {
      isTenant: (kid) => directory.consentTenant(kid) !== undefined,
      at(host) {
        const all = directory.consentTenants();
        if (all.length === 1) return all.map(({ kid }) => kid);
        return all
          .filter(({ origins }) => [...origins].some((one) => new URL(one).host === host))
          .map(({ kid }) => kid);
      },
    },
    findPublicKey: (kid) => directory.publicKey(kid),
    consent,
    rights,
    origin,
    views: platform.views,
    https: address.url.startsWith('https:'),
    extra: [console, ...extra],
    onFault,
  });
}
