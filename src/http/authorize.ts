import type { IncomingHttpHeaders } from 'node:http';
import { type ApiKey, bearerToken, isSessionToken, type PrincipalSession } from '../auth/credentials.ts';
import { Refusal } from '../lib/errors.ts';
import type { KeyScope, Route } from '../schema/route.ts';
import { charge, refuseOver, type WatchedLimiter } from './limiter.ts';
import { type KnowsOrigin, keyPrefix, noteRefusal } from './reply.ts';
import type { HttpRequest, Limiter } from './request.ts';

/** Finds who calls with an API key or a session, and whether the row of a route lets them in. */

/** The caller of the consent API: a key of a tenant, or a person in a session. */
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

/**
 * Finds the API key with this secret, for a client; null for unknown and revoked alike.
 * @param secondsBlocked while it is above 0, this client may cause no look-up
 */
export type FindApiKey = (secret: string, client: string, secondsBlocked: number) => Promise<ApiKey | null>;

/** The parts of a request that identify its sender. */
export type RequestSender = Pick<HttpRequest, 'headers' | 'limitKey'>;

/** The buckets of the consent API (ADR 0035). */
export interface ConsentLimits {
  /** One bucket per key, or per principal of a session. */
  readonly key: Limiter;
  /** One bucket per client address, for callers without a secret. */
  readonly client: WatchedLimiter;
  /** One bucket per client, for withdrawals of the same callers. */
  readonly withdrawal: WatchedLimiter;
  /** One bucket per client, for reads of a state by the same callers: open pages ask often. */
  readonly state: WatchedLimiter;
  /** One bucket per client, for callers without any credential. */
  readonly anonymous: Limiter;
  /** One bucket per client, for grants and denials of browser principals that the tenant does not know. */
  readonly newcomer: Limiter;
}

export interface AuthorizeDeps {
  readonly findApiKey: FindApiKey;
  readonly findSession: (token: string) => Promise<PrincipalSession | null>;
  readonly limits: ConsentLimits;
  readonly knowsOrigin: KnowsOrigin;
}

/** A publishable key is in every page: its caller may be anyone. */
export const isBrowser = (caller: Caller): caller is KeyCaller =>
  caller.kind === 'key' && caller.key.scope === 'publishable';

async function identify(
  deps: AuthorizeDeps,
  token: string,
  client: string,
  secondsBlocked: number,
): Promise<Caller | null> {
  if (isSessionToken(token)) {
    refuseOver(secondsBlocked);
    const session = await deps.findSession(token);
    return session && { kind: 'session', kid: session.kid, session };
  }
  const key = await deps.findApiKey(token, client, secondsBlocked);
  return key && { kind: 'key', kid: key.kid, key };
}

/** The parts of a route's row that authorisation needs. */
interface Admits {
  readonly credential: readonly (KeyScope | 'session')[];
  readonly limit: Route['limit'];
}

/**
 * Browsers send Sec-Fetch-Site and no script can set or remove it (W3C Fetch Metadata), but not from a page
 * without TLS: such a page is recognised by its origin. Backends send neither.
 */
const isFromPage = (headers: IncomingHttpHeaders, knowsOrigin: KnowsOrigin): boolean =>
  headers['sec-fetch-site'] !== undefined || (headers.origin !== undefined && knowsOrigin(headers.origin));

/** Rate, then 401, then 403 (contract section 1). @throws {Refusal} */
export async function authorize(
  deps: AuthorizeDeps,
  { headers, limitKey }: RequestSender,
  { credential, limit }: Admits,
): Promise<Caller> {
  const { limits } = deps;
  const isWithdrawal = limit === 'consent-withdrawal';
  const otherLimit = limit === 'consent-state' ? limits.state : limits.client;
  const clientLimit = isWithdrawal ? limits.withdrawal : otherLimit;
  const token = bearerToken(headers.authorization);
  const caller = token === null ? null : await identify(deps, token, limitKey, clientLimit.spent(limitKey));
  const browser = caller !== null && isBrowser(caller);
  if (token === null) await charge(limits.anonymous, limitKey);
  else if (!caller || browser) await charge(clientLimit.charge, limitKey);
  if (token !== null && !caller) noteRefusal('unknown-key', keyPrefix(token));
  if (!caller) throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
  const id = caller.kind === 'key' ? caller.key.hash : caller.session.principal;
  const keyId = caller.kind === 'key' ? caller.key.id : '';
  if (!browser) await charge(limits.key, isWithdrawal ? `withdraw ${id}` : id);
  if (caller.kind === 'key' && !browser && isFromPage(headers, deps.knowsOrigin)) {
    noteRefusal('secret-key-in-page', keyId);
    throw new Refusal('secret-key-in-page');
  }
  if (!credential.includes(caller.kind === 'key' ? caller.key.scope : 'session'))
    throw new Refusal('insufficient-scope');
  // All visitors share this bucket: refused requests are not counted in it, nor are withdrawals.
  if (browser && limit === 'consent') await charge(limits.key, id);
  return caller;
}

/** A session acts for its own principal only. @throws {Refusal} */
export function requireOwnPrincipal(caller: Caller, principalId: string): void {
  if (caller.kind === 'session' && caller.session.principalId !== principalId)
    throw new Refusal('not-your-principal');
}
