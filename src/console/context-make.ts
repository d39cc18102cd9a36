import { randomBytes } from 'node:crypto';
import type { StaffRole } from '../auth/credentials.ts';
import type { Config } from '../config.ts';
import { makeEmbed } from '../consent/banner.ts';
import type { LoginProvider } from '../egress/oidc-login.ts';
import { makeReadWhole } from '../http/limiter.ts';
import type { Limiter } from '../http/request.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Actor } from '../lib/act.ts';
import { hmacSha256 } from '../lib/crypto.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import type { LogService } from '../log/service.ts';
import type { DsarDeps } from '../rights/dsar/service.ts';
import { openArchiveSigner } from '../rights/dsar/signer.ts';
import { makeExports } from '../rights/dsar/staff-export-service.ts';
import { outsideOf } from '../rights/erase/erasure-log.ts';
import type { RightsServices } from '../rights/services-make.ts';
import type { Store } from '../tenants/installation-files.ts';
import { makeRender } from './render.ts';

/** Hands the console its services. */

export interface SignInLimits {
  /** By client. */
  readonly limiter: Limiter;
  /** Whether a state comes back for the first time, on any node. @param until when its sign-in expires */
  readonly isFirstUse: (state: string, until: number) => Promise<boolean>;
}

export interface ConsoleParts extends Pick<DsarDeps, 'tenantOf' | 'ingestTenantOf' | 'clock'> {
  readonly config: Config;
  /** Of the OIDC client; null when the console is not configured. */
  readonly clientSecret: string | null;
  readonly store: Pick<Store, 'database'>;
  readonly book: CheckpointBook;
  readonly log: LogService;
  readonly serverSecret: Uint8Array;
  readonly masterKey: () => MasterKey;
  readonly rights: RightsServices;
  readonly limiters: { readonly signIn: SignInLimits };
  readonly views: string;
  /** The public origin; staff sign in there and nowhere else. */
  readonly origin: () => string;
  readonly onFault: (requestId: string, error: unknown) => void;
  readonly onLoginFault: (error: unknown) => void;
}

/** Exports and verifications of a tenant at a time, on each node. */
const MAX_READING = 3;

function makeConsoleReading() {
  const readWhole = makeReadWhole(MAX_READING);
  const tooMany = (): Unavailable => new Unavailable('too many exports and verifications are running', 10);
  return <T>({ kid }: Pick<Staff, 'kid'>, work: () => Promise<T>): Promise<T> =>
    readWhole(kid, work, tooMany);
}

function exportsOf(parts: ConsoleParts) {
  const { store, rights, masterKey, clock, origin } = parts;
  const signer = () =>
    openArchiveSigner({ ...store, masterKey: masterKey(), clock, host: new URL(origin()).hostname });
  return makeExports({ ...parts, api: rights.api, signer });
}

/** Loaded with the first sign-in; it repeats its discovery automatically. */
function providerOf({ config, clientSecret, clock, origin, onLoginFault: onFault }: ConsoleParts) {
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
      random: randomBytes,
      clock,
      onFault,
    };
    provider ??= import('../egress/oidc-login.ts').then((login) => login.makeLoginProvider(options));
    return provider;
  };
}

/** What the console's pages and services are handed. */
export type Context = ReturnType<typeof makeContext>;

/** Named one by one: pages are handed what is derived from a secret, and no secret. */
export function makeContext(parts: ConsoleParts) {
  const { config, store, serverSecret, book, log, tenantOf, ingestTenantOf, clock, origin, views } = parts;
  const { database } = store;
  const { api: rights, eraser, contestTexts } = parts.rights;
  return {
    config,
    database,
    tenantOf,
    ingestTenantOf,
    clock,
    origin,
    random: randomBytes,
    /** Derived from the server's secret. */
    keys: {
      login: hmacSha256(serverSecret, 'gpd/console-login/v1'),
      idToken: hmacSha256(serverSecret, 'gpd/console-id-token/v1'),
    },
    provider: providerOf(parts),
    signInLimits: parts.limiters.signIn,
    rights,
    eraser,
    contestTexts,
    /** Survives a restore. */
    outside: outsideOf({ database, serverSecret }, config),
    exports: exportsOf(parts),
    readWhole: makeConsoleReading(),
    book,
    log,
    /** The banner as it was built. */
    embed: makeEmbed(),
    views,
    render: makeRender({ random: randomBytes, clock }),
    onFault: parts.onFault,
    onLoginFault: parts.onLoginFault,
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
