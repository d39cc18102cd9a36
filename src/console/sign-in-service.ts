import { actorRef, writeAudit } from '../audit/audit-store.ts';
import {
  CONSOLE_ABSOLUTE_MS,
  type ConsoleSession,
  createConsoleToken,
  hashSecret,
  type LoginChallenge,
  LoginRefused,
  roleOf,
  type VerifiedLogin,
} from '../auth/credentials.ts';
import { type Claimant, ClaimRefused, type Claims, readClaimant } from '../auth/tokens.ts';
import type { Config } from '../config.ts';
import { environmentName } from '../schema/settings.ts';
import type { Context } from './context-service.ts';
import { decryptIdToken, encryptIdToken } from './cookies.ts';
import { type ConsoleTransaction, insertConsoleSession } from './session-store.ts';
import { hashProvider } from './sessions-service.ts';

/**
 * Signs staff in: reads role, tenant and name from the claims
 * of the identity provider, and creates an audited session.
 */

/** @returns the names of the settings that are missing */
export function missingConsoleSettings(config: Config): readonly string[] {
  const needed = ['oidc_issuer', 'console_client_id', 'console_client_secret_file'] as const;
  return needed.filter((name) => config[name] === null).map(environmentName);
}

/** Makes one line without invisible characters. A mail address is cut before its @. */
function cleanName(value: unknown): string {
  const oneLine = typeof value === 'string' ? value.replace(/[\p{C}\p{Z}\p{DI}\s]+/gu, ' ').trim() : '';
  const at = oneLine.indexOf('@');
  return Array.from(at > 0 ? oneLine.slice(0, at) : oneLine)
    .slice(0, 60)
    .join('');
}

/** @returns the first legible name, which colleagues see */
function chooseLabel(claims: Claims, claimant: Claimant): string {
  const names = [claims['name'], claims['preferred_username'], claimant.sub].map(cleanName);
  return names.find((name) => name !== '') ?? '?';
}

/** False if the claims only have `sub`, an internal id by which colleagues would not recognise each other. */
const hasName = (claims: Claims): boolean =>
  [claims['name'], claims['preferred_username']].some(
    (name) => typeof name === 'string' && name.trim() !== '',
  );

const isStaff = (claimant: Claimant): boolean => claimant.roles.has('reviewer') || claimant.roles.has('dpo');

function tryReadClaimant(config: Config, claims: Claims): Claimant | null {
  const rules = {
    ...config,
    issuer: config.oidc_issuer ?? '',
    audience: config.console_client_id ?? '',
  };
  try {
    return readClaimant(claims, rules);
  } catch (error) {
    if (error instanceof ClaimRefused) return null;
    throw error;
  }
}

/** Reads role, tenant and name from the ID token, and from userinfo if the ID token lacks one of them. */
async function identify({ config, onLoginFault }: Context, login: VerifiedLogin) {
  const claimant = tryReadClaimant(config, login.claims);
  const isComplete = claimant && isStaff(claimant) && claimant.tenant !== null && hasName(login.claims);
  if (isComplete) return { claimant, claims: login.claims };
  const claims = await login.fetchUserinfoClaims().catch((error: unknown) => {
    onLoginFault(error);
    // Without userinfo a name may be missing, but not a role or a tenant: userinfo might have contained them.
    if (!claimant || !isStaff(claimant) || claimant.tenant === null) throw new LoginRefused('userinfo');
    return login.claims;
  });
  return { claimant: tryReadClaimant(config, claims), claims };
}

/** The person who signs in. */
export type NewSession = Pick<ConsoleSession, 'kid' | 'actor' | 'label' | 'roles' | 'idToken'>;

/** @param token the cookie's value @param before a check or a write that belongs to the same transaction */
export async function openSession(
  { database, clock, random, config }: Context,
  token: string,
  person: NewSession,
  before: (tx: ConsoleTransaction) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const now = clock();
  const { kid } = person;
  const session: ConsoleSession = {
    ...person,
    hash: hashSecret(token),
    provider: hashProvider(config),
    csrf: createConsoleToken(random),
    createdAt: now,
    seenAt: now,
    expiresAt: now + CONSOLE_ABSOLUTE_MS,
  };
  await database.transaction(async (tx) => {
    await before(tx);
    await insertConsoleSession(tx, session);
    const actor = { role: roleOf(session), ref: session.actor };
    await writeAudit(tx, { kid, at: now, actor, action: 'staff.signed-in', object: null, detail: {} });
  });
}

const refuse = (reason: 'no-role' | 'no-tenant' | 'unknown-tenant') => ({ ok: false, reason }) as const;

/**
 * @returns the token of the new session, or the reason why this person is no staff
 * @throws {LoginRefused}, {Unavailable}
 */
export async function finishSignIn(context: Context, callback: URL, challenge: LoginChallenge) {
  const login = await (await context.provider()).finish(callback, challenge);
  const { claimant, claims } = await identify(context, login);
  if (!claimant || !isStaff(claimant)) return refuse('no-role');
  if (claimant.tenant === null) return refuse('no-tenant');
  const tenant = context.tenantOf(claimant.tenant);
  if (!tenant) return refuse('unknown-tenant');
  const token = createConsoleToken(context.random);
  await openSession(context, token, {
    kid: tenant.kid,
    actor: actorRef(tenant.rightsKey, claimant.issuer, claimant.sub),
    label: chooseLabel(claims, claimant),
    roles: [...claimant.roles].filter((role) => role !== 'subject'),
    idToken: encryptIdToken(context.keys.idToken, context.random, hashSecret(token), login.idToken),
  });
  return { ok: true, token } as const;
}

/**
 * @returns the address at which the browser signs out of the provider too; null if it has none, or the client
 * was unset
 */
export async function signOutAddress({ config, provider, keys }: Context, { hash, idToken }: ConsoleSession) {
  if (missingConsoleSettings(config).length > 0) return null;
  return (await provider()).signOutAddress(decryptIdToken(keys.idToken, hash, idToken));
}
