import type { StaffRole } from '../auth/credentials.ts';
import type { Config } from '../config.ts';
import { createEmbed } from '../consent/banner.ts';
import type { Database } from '../db/engine.ts';
import type { LoginProvider } from '../egress/oidc-login.ts';
import { createReadWhole } from '../http/limiter.ts';
import type { Limiter } from '../http/request.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Actor } from '../lib/act.ts';
import type { Clock } from '../lib/clock.ts';
import { hmacSha256, type Random } from '../lib/crypto.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import type { LogService } from '../log/service.ts';
import type { Rights } from '../rights/create-rights.ts';
import { openArchiveSigner } from '../rights/dsar/signer.ts';
import { createExports } from '../rights/dsar/staff-export-service.ts';
import { outsideOf } from '../rights/erase/erasure-log.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { createRender } from './render.ts';
import { hasStaff } from './staff-store.ts';

/** Hands the console its services. */

export interface SignInLimits {
  /** By client. */
  readonly limiter: Limiter;
  /** Whether a state comes back for the first time, on any node. @param until when its sign-in expires */
  readonly isFirstUse: (state: string, until: number) => Promise<boolean>;
}

export interface ConsoleNeeds {
  readonly config: Config;
  /** Of the OIDC client; null when the console is not configured. */
  readonly clientSecret: string | null;
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  readonly book: CheckpointBook;
  readonly log: LogService;
  readonly serverSecret: Uint8Array;
  readonly masterKey: () => MasterKey;
  readonly rights: Rights;
  readonly signInLimits: SignInLimits;
  readonly views: string;
  /** The public origin; staff sign in there and nowhere else. */
  readonly origin: () => string;
  readonly onFault: (requestId: string, error: unknown) => void;
  readonly onLoginFault: (error: unknown) => void;
}

/** Exports and verifications of a tenant at a time, on each node. */
const MAX_READING = 3;

function createConsoleReading() {
  const readWhole = createReadWhole(MAX_READING);
  const tooMany = (): Unavailable => new Unavailable('too many exports and verifications are running', 10);
  return <T>({ kid }: Pick<Staff, 'kid'>, work: () => Promise<T>): Promise<T> =>
    readWhole(kid, work, tooMany);
}

function exportsOf({ database, tenantOf, rights, masterKey, clock, origin }: ConsoleNeeds) {
  const signer = () =>
    openArchiveSigner({ database, masterKey: masterKey(), clock, host: new URL(origin()).hostname });
  return createExports({ database, tenantOf, clock, api: rights.api, signer });
}

/** Loaded with the first sign-in; it repeats its discovery automatically. */
function providerOf({ config, clientSecret, clock, random, origin, onLoginFault: onFault }: ConsoleNeeds) {
  const { oidc_issuer: issuer, console_client_id: clientId } = config;
  let provider: Promise<LoginProvider> | null = null;
  return (): Promise<LoginProvider> => {
    if (issuer === null || clientId === null || clientSecret === null)
      throw new Error('the console is not configured');
    const redirectUri = (): string => `${origin()}/console/callback`;
    const signedOutUri = (): string => `${origin()}/console/signed-out`;
    const options = {
      issuer,
      clientId,
      clientSecret,
      redirectUri,
      signedOutUri,
      random,
      clock,
      onFault,
    };
    provider ??= import('../egress/oidc-login.ts').then((login) => login.createLoginProvider(options));
    return provider;
  };
}

/** What the console's pages and services are handed. */
export type Context = ReturnType<typeof createContext>;

/** Named one by one: pages are handed what is derived from a secret, and no secret. */
export function createContext(needs: ConsoleNeeds) {
  const { config, database, serverSecret, book, log, tenantOf, clock, random, origin, views } = needs;
  const { api: rights, eraser, contestTexts } = needs.rights;
  return {
    config,
    database,
    tenantOf,
    clock,
    origin,
    random,
    /** Derived from the server's secret. */
    keys: {
      login: hmacSha256(serverSecret, 'gpd/console-login/v1'),
      idToken: hmacSha256(serverSecret, 'gpd/console-id-token/v1'),
      passkey: hmacSha256(serverSecret, 'gpd/console-passkey/v1'),
    },
    provider: providerOf(needs),
    signInLimits: needs.signInLimits,
    hasStaff: () => hasStaff(database),
    rights,
    eraser,
    contestTexts,
    /** Survives a restore. */
    outside: outsideOf({ database, serverSecret }, config),
    exports: exportsOf(needs),
    readWhole: createConsoleReading(),
    book,
    log,
    /** The banner as it was built. */
    embed: createEmbed(),
    views,
    render: createRender({ random, clock }),
    onFault: needs.onFault,
    onLoginFault: needs.onLoginFault,
  };
}

/** Staff at work, within the one tenant of their token. */
export interface Staff {
  readonly kid: string;
  readonly role: StaffRole;
  /** Keyed reference. */
  readonly ref: string;
  readonly label: string;
}

/** As the audit log knows them. */
export const actorOf = ({ role, ref }: Staff): Actor => ({ role, ref });

/** Theirs. @throws {Refusal} `not-found` when it was removed meanwhile */
export function requireTenant({ tenantOf }: Pick<Context, 'tenantOf'>, { kid }: Pick<Staff, 'kid'>) {
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('not-found');
  return tenant;
}
