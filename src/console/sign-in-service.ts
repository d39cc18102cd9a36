import { actorRef } from '../audit/audit.ts';
import { writeAudit } from '../audit/store.ts';
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
import type { Claims } from '../auth/tokens.ts';
import { type Claimant, ClaimRefused, readClaimant } from '../auth/tokens.ts';
import type { Config } from '../config.ts';
import { environmentName } from '../schema/settings.ts';
import type { Context } from './context.ts';
import { decryptIdToken, encryptIdToken } from './cookies.ts';
import { type ConsoleTransaction, insertConsoleSession } from './session-store.ts';

/** Sign-in of staff: from the identity provider's claims to a session, with its row in the audit log. */

/** Sentences that say what to set, as `gpd doctor` says it too; none when the console is configured. */
export function missingConsoleSettings(config: Config): readonly string[] {
  const what = {
    oidc_issuer: 'the issuer of your identity provider',
    console_client_id: 'the client id that it knows the console by',
    console_client_secret_file: 'a file with the secret of that client',
  };
  return (Object.keys(what) as (keyof typeof what)[])
    .filter((name) => config[name] === null)
    .map((name) => `${environmentName(name)}: ${what[name]}`);
}

/** One line without what is invisible; what looks like a mail address is cut before its @. */
function legible(value: unknown): string {
  const bare = typeof value === 'string' ? value.replace(/[\p{C}\p{Z}\p{DI}\s]+/gu, ' ').trim() : '';
  const at = bare.indexOf('@');
  return Array.from(at > 0 ? bare.slice(0, at) : bare)
    .slice(0, 60)
    .join('');
}

/** A name for colleagues: the first that can be read. */
function labelOf(claims: Claims, claimant: Claimant): string {
  const names = [claims['name'], claims['preferred_username'], claimant.sub].map(legible);
  return names.find((name) => name !== '') ?? '?';
}

/** Colleagues have to know each other by more than what the provider calls them inside. */
const isNamed = (claims: Claims): boolean =>
  [claims['name'], claims['preferred_username']].some(
    (name) => typeof name === 'string' && name.trim() !== '',
  );

const isStaff = (claimant: Claimant): boolean => claimant.roles.has('reviewer') || claimant.roles.has('dpo');

function claimantOf(config: Config, claims: Claims): Claimant | null {
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

/** Role, tenant and name from the ID token; where it does not say all, from userinfo too. */
async function identify({ config, onLoginFault }: Context, login: VerifiedLogin) {
  const claimant = claimantOf(config, login.claims);
  const whole = claimant && isStaff(claimant) && claimant.tenant !== null && isNamed(login.claims);
  if (whole) return { claimant, claims: login.claims };
  const claims = await login.fetchUserinfoClaims().catch((error: unknown) => {
    onLoginFault(error);
    // A name may be missing, a role or a tenant may not: nobody knows what userinfo would have said.
    if (!claimant || !isStaff(claimant) || claimant.tenant === null) throw new LoginRefused('userinfo');
    return login.claims;
  });
  return { claimant: claimantOf(config, claims), claims };
}

/** Who signs in. */
export type NewSession = Pick<ConsoleSession, 'kid' | 'actor' | 'label' | 'roles' | 'idToken'>;

/** @param token the cookie's value @param before what has to hold in the same transaction */
export async function openSession(
  { database, clock, random }: Context,
  token: string,
  who: NewSession,
  before: (tx: ConsoleTransaction) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const now = clock();
  const { kid } = who;
  const session: ConsoleSession = {
    ...who,
    hash: hashSecret(token),
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

const nobody = (why: 'no-role' | 'no-tenant' | 'unknown-tenant') => ({ ok: false, why }) as const;

/** Who came back from the identity provider, or why nobody did. @throws {LoginRefused}, {Unavailable} */
export async function finishSignIn(context: Context, callback: URL, begun: LoginChallenge) {
  const login = await (await context.provider()).finish(callback, begun);
  const { claimant, claims } = await identify(context, login);
  if (!claimant || !isStaff(claimant)) return nobody('no-role');
  if (claimant.tenant === null) return nobody('no-tenant');
  const tenant = context.tenantOf(claimant.tenant);
  if (!tenant) return nobody('unknown-tenant');
  const token = createConsoleToken(context.random);
  await openSession(context, token, {
    kid: tenant.kid,
    actor: actorRef(tenant.rightsKey, claimant.issuer, claimant.sub),
    label: labelOf(claims, claimant),
    roles: [...claimant.roles].filter((role) => role !== 'subject'),
    idToken: encryptIdToken(context.keys.idToken, context.random, hashSecret(token), login.idToken),
  });
  return { ok: true, token } as const;
}

/** Where the browser signs out at the provider too; null: nowhere. */
export async function signOutAddress({ config, provider, keys }: Context, { hash, idToken }: ConsoleSession) {
  if (config.oidc_issuer === null) return null;
  return (await provider()).endSession(decryptIdToken(keys.idToken, hash, idToken));
}
