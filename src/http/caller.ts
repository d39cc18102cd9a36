import type { IncomingHttpHeaders } from 'node:http';
import { type ApiKey, bearerToken } from '../auth/api-key.ts';
import { isSessionToken, type PrincipalSession } from '../auth/session.ts';
import { Refusal } from '../lib/errors.ts';
import type { KeyScope } from '../schema/route.ts';
import type { Limiter } from './hot.ts';

/** Who calls the consent API: a key of a tenant, or a person in a session. */
export interface KeyCaller {
  readonly kind: 'key';
  readonly kid: string;
  readonly key: ApiKey;
}
export interface SessionCaller {
  readonly kind: 'session';
  readonly kid: string;
  readonly session: PrincipalSession;
}
export type Caller = KeyCaller | SessionCaller;

/** By the secret as presented, for a client; null for unknown and revoked alike. */
export type FindApiKey = (secret: string, client: string) => Promise<ApiKey | null>;

/** Of a request what says who sent it. */
export interface Asker {
  readonly headers: IncomingHttpHeaders;
  readonly limitKey: string;
}

export interface AuthorizeDeps {
  readonly findApiKey: FindApiKey;
  readonly findSession: (token: string) => Promise<PrincipalSession | null>;
  readonly limiter: Limiter;
}

async function identify(deps: AuthorizeDeps, token: string, client: string): Promise<Caller | null> {
  if (isSessionToken(token)) {
    const session = await deps.findSession(token);
    return session && { kind: 'session', kid: session.kid, session };
  }
  const key = await deps.findApiKey(token, client);
  return key && { kind: 'key', kid: key.kid, key };
}

/** Rate, then 401, then 403 (contract section 1). @throws {Refusal} */
export async function authorize(
  deps: AuthorizeDeps,
  { headers, limitKey }: Asker,
  scopes: readonly (KeyScope | 'session')[],
): Promise<Caller> {
  const token = bearerToken(headers.authorization);
  const caller = token === null ? null : await identify(deps, token, limitKey);
  if (!caller) throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
  const wait = await deps.limiter(caller.kind === 'key' ? caller.key.hash : caller.session.principal);
  if (wait > 0) throw new Refusal('rate-limited', { headers: { 'retry-after': String(wait) } });
  if (!scopes.includes(caller.kind === 'key' ? caller.key.scope : 'session'))
    throw new Refusal('insufficient-scope');
  return caller;
}

/** A session speaks for its own principal and for nobody else. @throws {Refusal} */
export function requireOwnPrincipal(caller: Caller, principalId: string): void {
  if (caller.kind === 'session' && caller.session.principalId !== principalId)
    throw new Refusal('not-your-principal');
}
