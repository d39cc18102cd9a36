import type { StaffRole } from '../auth/credentials.ts';
import { createEmbed } from '../consent/banner-store.ts';
import type { LoginProvider } from '../egress/oidc-login.ts';
import { createReadWhole } from '../http/limiter.ts';
import type { Limiter } from '../http/request.ts';
import type { Actor } from '../lib/act.ts';
import { hmacSha256 } from '../lib/crypto.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { CheckpointBook } from '../log/checkpoint-files.ts';
import { readPolicy } from '../log/cosign-service.ts';
import type { LogService } from '../log/service.ts';
import type { Rights } from '../rights/create-rights-service.ts';
import { openArchiveSigner } from '../rights/dsar/signer-store.ts';
import { createExports } from '../rights/dsar/staff-export-service.ts';
import { erasureLogAccess } from '../rights/erase/erasure-log-service.ts';
import { createEvidenceService } from '../rights/evidence/evidence-service.ts';
import type { Installation } from '../tenants/directory.ts';
import { createRender } from './render.ts';
import { hasStaff } from './staff-store.ts';

/** The services of the console's pages. The app builds ConsoleNeeds; createContext derives the rest. */

export interface SignInLimits {
  /** Limits the requests of one client. */
  readonly limiter: Limiter;
  /**
   * True if no node has seen this state before.
   * @param until when the state expires: it has to be the same for each use, because uses are counted per
   * expiry
   */
  readonly isFirstUse: (state: string, until: number) => Promise<boolean>;
}

export interface ConsoleNeeds extends Omit<Installation, 'keyUse'> {
  /** The secret of the OIDC client; null if none is configured. */
  readonly clientSecret: string | null;
  readonly book: CheckpointBook;
  readonly log: LogService;
  readonly rights: Rights;
  readonly signInLimits: SignInLimits;
  readonly views: string;
  /** The public origin, the only one at which staff can sign in. */
  readonly origin: () => string;
  readonly onFault: (requestId: string, error: unknown) => void;
  readonly onLoginFault: (error: unknown) => void;
}

/** The number of exports and verifications that may run at once, per tenant and node. */
const MAX_READING = 3;

function createConsoleReading() {
  const readWhole = createReadWhole(MAX_READING);
  const createTooMany = (): Unavailable =>
    new Unavailable('too many exports and verifications are running', 10);
  return <T>({ kid }: Pick<Staff, 'kid'>, work: () => Promise<T>): Promise<T> =>
    readWhole(kid, work, createTooMany);
}

function createConsoleExports({ database, tenants, tenantOf, rights, clock, origin }: ConsoleNeeds) {
  const signer = () =>
    openArchiveSigner({ database, masterKey: tenants.masterKey(), clock, host: new URL(origin()).hostname });
  return createExports({ database, tenantOf, clock, api: rights.api, signer });
}

/** Loads the OIDC client on the first sign-in. It repeats its discovery automatically. */
function createProviderLoader({
  config,
  clientSecret,
  clock,
  random,
  origin,
  onLoginFault: onFault,
}: ConsoleNeeds) {
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

/** The services of every console page. */
export type Context = ReturnType<typeof createContext>;

/**
 * Picks each service by name, so that pages get keys that
 * are derived from the server's secret and never the secret.
 */
export function createContext(needs: ConsoleNeeds) {
  const { config, database, serverSecret, book, log, tenantOf, clock, random, origin, views } = needs;
  const { api: rights, eraser, contestTexts } = needs.rights;
  const embed = createEmbed();
  return {
    config,
    database,
    tenantOf,
    clock,
    origin,
    random,
    keys: {
      login: hmacSha256(serverSecret, 'gpd/console-login/v1'),
      idToken: hmacSha256(serverSecret, 'gpd/console-id-token/v1'),
      flash: hmacSha256(serverSecret, 'gpd/console-flash/v1'),
    },
    provider: createProviderLoader(needs),
    signInLimits: needs.signInLimits,
    hasStaff: () => hasStaff(database),
    rights,
    eraser,
    contestTexts,
    /** The erasure log, a file outside the database, which a restore does not replace. */
    logAccess: erasureLogAccess({ database, serverSecret }, config),
    exports: createConsoleExports(needs),
    evidence: createEvidenceService({ ...needs, embed, witnesses: readPolicy(config) }),
    readWhole: createConsoleReading(),
    book,
    log,
    /** The built files of the banner. */
    embed,
    views,
    render: createRender({ random, clock }),
    onFault: needs.onFault,
    onLoginFault: needs.onLoginFault,
  };
}

/** A signed-in staff member, who belongs to exactly one tenant. */
export interface Staff {
  readonly kid: string;
  readonly role: StaffRole;
  /** Keyed reference of the person. */
  readonly ref: string;
  readonly label: string;
}

/** The form in which the audit log names a staff member. */
export const actorOf = ({ role, ref }: Staff): Actor => ({ role, ref });

/** The tenant that this staff member belongs to. @throws {Refusal} `not-found` if it was removed meanwhile */
export function requireTenant({ tenantOf }: Pick<Context, 'tenantOf'>, { kid }: Pick<Staff, 'kid'>) {
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('not-found');
  return tenant;
}
