import { operatorActor } from '../audit/operator.ts';
import { isSessionToken, type PrincipalSession } from '../auth/session.ts';
import type { Database } from '../db/db.ts';
import type { FindApiKey } from '../http/caller.ts';
import type { KnowsOrigin } from '../http/cors.ts';
import type { Limiter } from '../http/hot.ts';
import type { Act } from '../lib/act.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import { Refusal, TenantGone } from '../lib/errors.ts';
import { makeLogService } from '../log/service.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { Purpose } from '../tenants/tenant.ts';
import { makeTenantStore } from '../tenants/tenant-store.ts';
import { makeConsentAppender } from './append-store.ts';
import { makeBannerService } from './banner-service.ts';
import { makeEmbed } from './embed.ts';
import { browserPrincipalId } from './principal.ts';
import { makeProveConsent } from './proven-purposes-service.ts';
import { issueReceipt } from './receipts-service.ts';
import { makeConsentService } from './service.ts';
import { makeConsentStateReader } from './state-store.ts';
import type { ConsentTenant } from './tenant.ts';
import { listPolicies, publishPolicy, savePurposes } from './terms-store.ts';

/** What the routes of the consent API are handed: everything by kid, nothing by table. */

export interface ConsentApiParts {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly knowsOrigin: KnowsOrigin;
  readonly findApiKey: FindApiKey;
  readonly limiter: Limiter;
  /** What the principal of a session asks for itself. */
  readonly eraseOwn: (tenant: ConsentTenant, session: PrincipalSession) => Promise<ErasureReceipt>;
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
  readonly clock: Clock;
}

const bannerFiles = new URL('../../dist/banner/', import.meta.url);

export type ConsentApi = ReturnType<typeof makeConsentApi>;

export function makeConsentApi(parts: ConsentApiParts) {
  const { database, clock, findApiKey, limiter, refresh, knowsOrigin } = parts;
  const tenantOf = (kid: string): ConsentTenant => {
    const tenant = parts.tenantOf(kid);
    if (!tenant) throw new TenantGone();
    return tenant;
  };
  const by = (kid: string, apiKey: string): Act => {
    const actor = operatorActor(tenantOf(kid).rightsKey, 'gpd api key', apiKey);
    return { ...actor, at: clock(), apiKey };
  };
  const appender = makeConsentAppender(database);
  const service = makeConsentService({ database, reader: makeConsentStateReader(database), appender, clock });
  const log = makeLogService({ database, signerOf: (kid) => parts.tenantOf(kid)?.signer, clock });
  const findSession = (token: string): Promise<PrincipalSession | null> =>
    isSessionToken(token) ? service.readSession(parts.tenantOf, token) : Promise.resolve(null);
  const authorization = { findApiKey, findSession, limiter };
  const isUnknown = ({ reason }: { readonly reason: string }): boolean => reason === 'unknown-purpose';
  const embed = makeEmbed(bannerFiles);
  const banners = makeBannerService({ database, clock, script: embed.scriptHash });
  return {
    idle: () => appender.idle(),
    proveConsent: makeProveConsent(database, service, tenantOf),
    authorization,
    log: {
      ...authorization,
      ...log,
      isPublic: (kid: string) => parts.tenantOf(kid)?.ledgerPublic === true,
    },
    consent: {
      ...authorization,
      // What this node does not know, another one may have defined a moment ago: looked up before it is refused.
      check: async (kid: string, request: Parameters<typeof service.check>[1]) => {
        const answer = await service.check(tenantOf(kid), request);
        if (!isUnknown(answer)) return answer;
        await refresh();
        return service.check(tenantOf(kid), request);
      },
      checkAll: async (kid: string, checks: Parameters<typeof service.checkAll>[1]) => {
        const answers = await service.checkAll(tenantOf(kid), checks);
        if (!answers.some(isUnknown)) return answers;
        await refresh();
        return service.checkAll(tenantOf(kid), checks);
      },
      checkTerms: async (kid: string, body: Parameters<typeof service.checkTerms>[1]) => {
        try {
          service.checkTerms(tenantOf(kid), body);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          await refresh();
          service.checkTerms(tenantOf(kid), body);
        }
      },
      write: (kid: string, request: Parameters<typeof service.write>[1]) =>
        service.write(tenantOf(kid), request),
      state: (kid: string, principalId: string) => service.state(tenantOf(kid), principalId),
      history: (kid: string, principalId: string, page: Parameters<typeof service.history>[2]) =>
        service.history(tenantOf(kid), principalId, page),
      openSession: (kid: string, principalId: string) => service.openSession(tenantOf(kid), principalId),
      originsOf: (kid: string) => tenantOf(kid).origins,
      browserPrincipalId,
      async receipt(kid: string, seq: number, session: PrincipalSession | null) {
        const issued = await issueReceipt({ database, clock }, tenantOf(kid), seq, session);
        if (issued === 'not-yours') throw new Refusal('not-your-principal');
        return issued;
      },
      erase: (session: PrincipalSession) => parts.eraseOwn(tenantOf(session.kid), session),
      knowsOrigin,
    },
    embed: {
      embed,
      banner: {
        ...authorization,
        banner: (kid: string, request: Parameters<typeof banners.banner>[1]) =>
          banners.banner(tenantOf(kid), request),
      },
    },
    terms: {
      ...authorization,
      purposes: (kid: string) => makeTenantStore(database).purposes(kid),
      async savePurposes(kid: string, purposes: readonly Purpose[], apiKey: string) {
        const entries = await savePurposes(database, kid, purposes, by(kid, apiKey));
        if (!entries) throw new TenantGone();
        await refresh();
        return { purposes: await makeTenantStore(database).purposes(kid), entries };
      },
      async policies(kid: string) {
        const policies = await listPolicies(database, kid);
        return policies.map((policy) => ({ ...policy, publishedAt: isoTime(policy.publishedAt) }));
      },
      async publishPolicy(
        kid: string,
        policy: { readonly text: string; readonly material: boolean },
        apiKey: string,
      ) {
        const published = await publishPolicy(database, kid, policy, by(kid, apiKey));
        if (!published) throw new TenantGone();
        await refresh();
        return { ...published, publishedAt: isoTime(published.publishedAt) };
      },
    },
  };
}
