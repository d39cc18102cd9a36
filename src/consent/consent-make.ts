import type { BotAuth } from '../agents/verify.ts';
import { isSessionToken, type PrincipalSession } from '../auth/credentials.ts';
import type { Database } from '../db/db.ts';
import type { ConsentLimits, FindApiKey } from '../http/register.ts';
import type { KnowsOrigin } from '../http/reply.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { TenantGone } from '../lib/errors.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import type { WitnessPolicy } from '../log/checkpoint-service.ts';
import { makeLogService } from '../log/service.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { KeyUseCounter } from '../tenants/key-use-service.ts';
import { makeConsentAppender } from './append-store.ts';
import { makeBanner, makeEmbed } from './banner.ts';
import { makeGrants, makeMarker } from './doubts.ts';
import { makeProveConsent } from './proven-purposes-service.ts';
import { makeConsentService, makeFreshConsent } from './service.ts';
import { makeConsentStateReader } from './state-store.ts';
import type { ConsentTenant } from './tenant.ts';

/** The consent half as its routes and its lane are handed it. */

export interface ConsentApiParts {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly knowsOrigin: KnowsOrigin;
  readonly findApiKey: FindApiKey;
  readonly limits: ConsentLimits;
  /** What the principal of a session asks for itself. */
  readonly eraseOwn: (tenant: ConsentTenant, session: PrincipalSession) => Promise<ErasureReceipt>;
  readonly keyUse: Pick<KeyUseCounter, 'noteVisit'>;
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
  readonly book: CheckpointBook;
  readonly witnesses: WitnessPolicy;
  readonly botAuth: BotAuth;
  /** A doubt was not recorded. */
  readonly onDoubtFault: (error: unknown) => void;
  readonly clock: Clock;
  readonly random: Random;
}

/** What the server and a command have in common. */
export function makeConsent({
  database,
  clock,
  random,
}: Pick<ConsentApiParts, 'database' | 'clock' | 'random'>) {
  const appender = makeConsentAppender(database);
  const reader = makeConsentStateReader(database);
  const service = makeConsentService({ database, reader, appender, clock, random });
  return { service, reader, idle: () => appender.idle() };
}

export function makeConsentApi(parts: ConsentApiParts) {
  const { database, book, clock, findApiKey, limits, refresh, knowsOrigin } = parts;
  /** @throws {TenantGone} */
  const tenantOf = (kid: string): ConsentTenant => {
    const tenant = parts.tenantOf(kid);
    if (!tenant) throw new TenantGone();
    return tenant;
  };
  const { service, reader, idle } = makeConsent(parts);
  const grants = makeGrants({ reader, marker: makeMarker(database), tenantOf, onFault: parts.onDoubtFault });
  const log = makeLogService({ database, book, keysOf: parts.tenantOf, clock, witnesses: parts.witnesses });
  const findSession = (token: string): Promise<PrincipalSession | null> =>
    isSessionToken(token) ? service.readSession(parts.tenantOf, token) : Promise.resolve(null);
  const authorization = { findApiKey, findSession, limits };
  const fresh = makeFreshConsent({ service, tenantOf, refresh });
  const embed = makeEmbed();
  const banner = makeBanner({ database, clock, script: embed.scriptHash });
  return {
    /** When nothing is being written any more. */
    idle: () => Promise.all([idle(), grants.idle()]),
    grants,
    proveConsent: makeProveConsent(database, service, tenantOf),
    authorization,
    consent: { ...authorization, check: fresh.check, knowsOrigin },
    routes: { ...parts, tenantOf, service, fresh, banner },
    embed,
    log: { ...log, isPublic: (kid: string) => parts.tenantOf(kid)?.settings['ledger.public'] === true },
  };
}
