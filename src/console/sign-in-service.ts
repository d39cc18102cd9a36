import { randomBytes } from 'node:crypto';
import type { AuditAction } from '../audit/audit.ts';
import { actorRef } from '../audit/reference.ts';
import { writeAudit } from '../audit/store.ts';
import { type Claimant, ClaimRefused, readClaimant } from '../auth/claims.ts';
import {
  CONSOLE_ABSOLUTE_MS,
  type ConsoleSession,
  hashConsoleToken,
  isLiveSession,
  makeConsoleToken,
  roleOf,
} from '../auth/console-session.ts';
import type { Claims } from '../auth/jwt.ts';
import type { LoginProvider, VerifiedLogin } from '../auth/ports.ts';
import type { Config } from '../config.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import { environmentName } from '../schema/settings.ts';
import { openIdToken, sealIdToken } from './id-token.ts';
import type { LoginPort, SessionPort, SignIn, Staff } from './ports.ts';
import {
  deleteConsoleSession,
  findConsoleSession,
  insertConsoleSession,
  listConsoleSessions,
  touchConsoleSession,
} from './session-store.ts';

/** Sign-in of staff: from the identity provider's claims to a session, with its row in the audit log. */

export interface SignInDeps {
  readonly config: Config;
  readonly clientSecret: string | null;
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly clock: Clock;
  readonly origin: () => string;
  readonly onFault: (error: unknown) => void;
  /** For the ID tokens of sessions. */
  readonly tokenKey: Uint8Array;
}

/** One sentence a setting; the page and `gpd doctor` say the same. */
function missingConsoleSettings(config: Config): readonly string[] {
  const what = {
    oidc_issuer: 'the issuer of your identity provider',
    console_client_id: 'the client id that it knows the console by',
    console_client_secret_file: 'a file with the secret of that client',
  };
  return (Object.keys(what) as (keyof typeof what)[])
    .filter((name) => config[name] === null)
    .map((name) => `${environmentName(name)}: ${what[name]}`);
}

/** Loaded with the first sign-in; discovered anew by itself. */
function makeProvider(deps: SignInDeps): () => Promise<LoginProvider> {
  const { oidc_issuer: issuer, console_client_id: clientId } = deps.config;
  const { clientSecret, onFault, origin } = deps;
  let provider: Promise<LoginProvider> | null = null;
  return () => {
    if (issuer === null || clientId === null || clientSecret === null)
      throw new Error('the console is not configured');
    const redirectUri = (): string => `${origin()}/console/callback`;
    const signedOutUri = (): string => `${origin()}/console/signed-out`;
    provider ??= import('../egress/oidc-login.ts').then(({ makeLoginProvider }) =>
      makeLoginProvider({
        issuer,
        clientId,
        clientSecret,
        redirectUri,
        signedOutUri,
        random: randomBytes,
        onFault,
      }),
    );
    return provider;
  };
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
function labelOf(claims: Claims, caller: Claimant): string {
  const names = [claims['name'], claims['preferred_username'], caller.sub].map(legible);
  return names.find((name) => name !== '') ?? '?';
}

/** Colleagues have to know each other by more than what the provider calls them inside. */
const isNamed = (claims: Claims): boolean =>
  [claims['name'], claims['preferred_username']].some(
    (name) => typeof name === 'string' && name.trim() !== '',
  );

const isStaff = (caller: Claimant): boolean => caller.roles.has('reviewer') || caller.roles.has('dpo');

interface Who {
  readonly claims: Claims;
  readonly idToken: string;
}

export function makeLoginPort(deps: SignInDeps): LoginPort {
  const { config, database, tenantOf, clock } = deps;
  const provider = makeProvider(deps);
  const rules = {
    issuer: config.oidc_issuer ?? '',
    audience: config.console_client_id ?? '',
    roleClaim: config.oidc_role_claim,
    tenantClaim: config.oidc_tenant_claim,
    visitorClaim: config.oidc_visitor_claim,
    principalClaim: config.oidc_principal_claim,
  };

  function read(claims: Claims): Claimant | null {
    try {
      return readClaimant(claims, rules);
    } catch (error) {
      if (error instanceof ClaimRefused) return null;
      throw error;
    }
  }

  /** Role, tenant and name from the ID token; where it does not say all, from userinfo too. */
  async function whoIs(login: VerifiedLogin): Promise<{ caller: Claimant | null; claims: Claims }> {
    const caller = read(login.claims);
    const whole = caller && isStaff(caller) && caller.tenant !== null && isNamed(login.claims);
    if (whole) return { caller, claims: login.claims };
    const claims = await login.more().catch((error: unknown) => {
      deps.onFault(error);
      return login.claims;
    });
    return { caller: read(claims), claims };
  }

  async function open(caller: Claimant, who: Who, tenant: ConsentTenant): Promise<SignIn> {
    const now = clock();
    const { kid } = tenant;
    const token = makeConsoleToken(randomBytes);
    const hash = hashConsoleToken(token);
    const session: ConsoleSession = {
      hash,
      kid,
      actor: actorRef(tenant.rightsKey, caller.issuer, caller.sub),
      label: labelOf(who.claims, caller),
      roles: [...caller.roles].filter((role) => role !== 'subject'),
      csrf: makeConsoleToken(randomBytes),
      idToken: sealIdToken(deps.tokenKey, hash, who.idToken),
      createdAt: now,
      seenAt: now,
      expiresAt: now + CONSOLE_ABSOLUTE_MS,
    };
    await database.transaction(async (tx) => {
      await insertConsoleSession(tx, session);
      const actor = { role: roleOf(session), ref: session.actor };
      await writeAudit(tx, { kid, at: now, actor, action: 'staff.signed-in', object: null, detail: {} });
    });
    return { ok: true, token, expiresAt: session.expiresAt };
  }

  return {
    missing: () => missingConsoleSettings(config),
    begin: async (switching) => (await provider()).begin(switching),
    async finish(callback, begun) {
      const login = await (await provider()).finish(callback, begun);
      const { caller, claims } = await whoIs(login);
      if (!caller || !isStaff(caller)) return { ok: false, why: 'no-role' };
      if (caller.tenant === null) return { ok: false, why: 'no-tenant' };
      const tenant = tenantOf(caller.tenant);
      if (!tenant) return { ok: false, why: 'unknown-tenant' };
      return open(caller, { claims, idToken: login.idToken }, tenant);
    },
    leave: async ({ hash, idToken }) =>
      (await provider()).endSession(openIdToken(deps.tokenKey, hash, idToken)),
  };
}

const MAX_SESSIONS = 100;

export function makeSessionPort(deps: Pick<SignInDeps, 'database' | 'tenantOf' | 'clock'>): SessionPort {
  const { database, clock, tenantOf } = deps;

  async function end(by: Staff, hash: string, action: AuditAction): Promise<boolean> {
    const { kid, role, ref } = by;
    return database.transaction(async (tx) => {
      if (!(await deleteConsoleSession(tx, kid, hash))) return false;
      await writeAudit(tx, { kid, at: clock(), actor: { role, ref }, action, object: null, detail: {} });
      return true;
    });
  }

  /** Live ones that a person may see: a dpo the tenant's, a reviewer their own. */
  async function within(staff: Staff): Promise<readonly ConsoleSession[]> {
    const all = await listConsoleSessions(database, staff.kid, clock() - CONSOLE_ABSOLUTE_MS, MAX_SESSIONS);
    return all.filter((s) => isLiveSession(s, clock()) && (staff.role === 'dpo' || s.actor === staff.ref));
  }

  /** The hash is the key of the table: a page shows the beginning of it. */
  const idOf = (session: ConsoleSession): string => session.hash.slice(0, 16);

  return {
    async find(token) {
      const session = await findConsoleSession(database, hashConsoleToken(token));
      // A tenant that was removed has no staff any more.
      return session && tenantOf(session.kid) ? session : null;
    },
    touch: (session) => touchConsoleSession(database, session.hash, clock()),
    async end(session) {
      const { kid, actor: ref, label } = session;
      await end({ kid, ref, label, role: roleOf(session) }, session.hash, 'staff.signed-out');
    },
    async list(staff, current) {
      return (await within(staff)).map((session) => ({
        id: idOf(session),
        label: session.label,
        role: roleOf(session),
        createdAt: session.createdAt,
        seenAt: session.seenAt,
        own: session.hash === current.hash,
      }));
    },
    async revoke(staff, id) {
      const found = (await within(staff)).find((session) => idOf(session) === id);
      return found ? end(staff, found.hash, 'staff.session-revoked') : false;
    },
  };
}
