import type { IncomingHttpHeaders } from 'node:http';
import type { BotAuth } from '../agents/verify.ts';
import { isSessionToken, type PrincipalSession } from '../auth/credentials.ts';
import type { ConsentLimits, FindApiKey } from '../http/authorize.ts';
import type { KnowsOrigin, Reply } from '../http/reply.ts';
import { Refusal, TenantGone } from '../lib/errors.ts';
import type { ConsentWrite, DecisionAnswer } from '../schema/consent.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { Installation } from '../tenants/directory.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { createConsentAppender } from './append-store.ts';
import { createBanner, createEmbed } from './banner-store.ts';
import { createGrants, createMarker } from './doubts-store.ts';
import { createMarkup } from './markup-files.ts';
import { createProveConsent } from './proven-purposes-service.ts';
import type { PersonReceipts } from './receipts-service.ts';
import { type ConsentCheck, type ConsentService, createConsentService } from './service.ts';
import { createStateService } from './state-service.ts';
import { type ConsentStateReader, createConsentStateReader } from './state-store.ts';

/** Connects the consent room: its store for all callers, and the API with its limits. */

export interface Consent {
  readonly service: ConsentService;
  readonly reader: ConsentStateReader;
  /** When nothing is being written any more. */
  idle(): Promise<void>;
}
type Check = ReturnType<typeof createFreshConsent>['check'];

/** Reads and writes consent; what the server and a command have in common. */
export function createConsent(parts: Pick<Installation, 'database' | 'clock' | 'random'>): Consent {
  const { database } = parts;
  const appender = createConsentAppender(database);
  const reader = createConsentStateReader(database);
  const service = createConsentService({ ...parts, reader, appender });
  return { service, reader, idle: () => appender.idle() };
}

export interface ConsentApiNeeds
  extends Pick<Installation, 'database' | 'clock' | 'tenants' | 'keyUse' | 'serverSecret'> {
  readonly consent: Consent;
  /** The public address of this server. */
  readonly issuer: () => string;
  readonly knowsOrigin: KnowsOrigin;
  readonly findApiKey: FindApiKey;
  readonly limits: ConsentLimits;
  /** Sends receipts as JSON-LD, or as a page. */
  readonly receiptReply: (receipts: PersonReceipts, headers: IncomingHttpHeaders) => Promise<Reply>;
  /** Erases the data of a principal, who asks in its own session. */
  readonly eraseOwn: (tenant: Tenant, session: PrincipalSession) => Promise<ErasureReceipt>;
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
  readonly botAuth: BotAuth;
  /** Wraps the check so that its answers are counted. */
  readonly counted: (check: Check) => Check;
  /** A doubt was not recorded. */
  readonly onDoubtFault: (error: unknown) => void;
}

/** The parts of the consent API that a server's routes need. */
export function createConsentApi(needs: ConsentApiNeeds) {
  const { database, clock, tenants, findApiKey, limits, refresh, knowsOrigin } = needs;
  const { service, reader } = needs.consent;
  /** @throws {TenantGone} */
  const tenantOf = (kid: string): Tenant => {
    const tenant = tenants.find(kid);
    if (!tenant) throw new TenantGone();
    return tenant;
  };
  const grants = createGrants({
    reader,
    marker: createMarker(database),
    tenantOf,
    onFault: needs.onDoubtFault,
  });
  const findSession = (token: string): Promise<PrincipalSession | null> =>
    isSessionToken(token) ? service.readSession(tenants.find, token) : Promise.resolve(null);
  const freshConsent = createFreshConsent(service, tenantOf, refresh);
  const embed = createEmbed();
  const authorization = { findApiKey, findSession, limits, knowsOrigin };
  return {
    /** When nothing is being written any more. */
    idle: () => Promise.all([needs.consent.idle(), grants.idle()]),
    grants,
    proveConsent: createProveConsent(database, service, tenantOf),
    check: freshConsent.check,
    authorization,
    routes: {
      database,
      clock,
      tenantOf,
      service,
      states: createStateService({ ...needs, reader }),
      authorization,
      fresh: freshConsent,
      check: needs.counted(freshConsent.check),
      refresh,
      limits,
      botAuth: needs.botAuth,
      keyUse: needs.keyUse,
      eraseOwn: needs.eraseOwn,
      receiptReply: needs.receiptReply,
      knowsOrigin,
      banner: createBanner({ database, clock, embed }),
      markup: createMarkup(embed),
    },
    embed,
  };
}

/**
 * Looks up an unknown purpose or version before it is refused: another node may have defined it a moment ago.
 */
interface FreshConsent {
  readonly check: (kid: string, request: ConsentCheck, isSecret?: boolean) => Promise<DecisionAnswer>;
  checkAll(kid: string, checks: readonly ConsentCheck[], isSecret: boolean): Promise<DecisionAnswer[]>;
  /** @throws {Refusal} `unknown-purpose`, `invalid-request` */
  checkTerms(kid: string, body: ConsentWrite): Promise<void>;
}

const isUnknown = ({ reason }: DecisionAnswer): boolean => reason === 'unknown-purpose';

/**
 * @param tenantOf throws {@link TenantGone}
 * @param refresh reads what changed in the database before this call
 */
function createFreshConsent(
  service: ConsentService,
  tenantOf: (kid: string) => Tenant,
  refresh: () => Promise<void>,
): FreshConsent {
  const twice = async <T>(ask: () => Promise<T>, lacks: (answer: T) => boolean): Promise<T> => {
    const answer = await ask();
    if (!lacks(answer)) return answer;
    await refresh();
    return ask();
  };
  return {
    check: (kid, request, isSecret = false) =>
      twice(() => service.check(tenantOf(kid), request, isSecret), isUnknown),
    checkAll: (kid, checks, isSecret) =>
      twice(
        () => service.checkAll(tenantOf(kid), checks, isSecret),
        (answers) => answers.some(isUnknown),
      ),
    async checkTerms(kid, body) {
      try {
        service.checkTerms(tenantOf(kid), body);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        await refresh();
        service.checkTerms(tenantOf(kid), body);
      }
      await service.checkDefinitions(tenantOf(kid), body);
    },
  };
}
