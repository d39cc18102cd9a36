import { type ApiKey, bearerToken } from '../auth/api-key.ts';
import { isSessionToken, type PrincipalSession } from '../auth/session.ts';
import { Refusal } from '../lib/errors.ts';
import type { KeyScope, Route } from '../schema/route.ts';
import type { HotRequest, Limiter } from './hot.ts';
import { charge, refuseOver, type WatchedLimiter } from './limiter.ts';
import { noteRefusal } from './noted-refusal.ts';

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

/**
 * By the secret as presented, for a client; null for unknown and revoked alike.
 * @param spent seconds for which this client may cause no look-up
 */
export type FindApiKey = (secret: string, client: string, spent: number) => Promise<ApiKey | null>;

/** Of a request what says who sent it. */
export type Asker = Pick<HotRequest, 'headers' | 'limitKey'>;

/** The buckets of the consent API (ADR 0035). */
export interface ConsentLimits {
  /** By key, or by the principal of a session. */
  readonly key: Limiter;
  /** Per client address: for callers without a secret. */
  readonly client: WatchedLimiter;
  /** By client: withdrawals of the same. */
  readonly withdrawal: WatchedLimiter;
  /** By client: grants and denials of browser principals that the tenant does not know. */
  readonly newcomer: Limiter;
}

export interface AuthorizeDeps {
  readonly findApiKey: FindApiKey;
  readonly findSession: (token: string) => Promise<PrincipalSession | null>;
  readonly limits: ConsentLimits;
}

/** A publishable key is in every page: its caller may be anybody. */
export const isBrowser = (caller: Caller): caller is KeyCaller =>
  caller.kind === 'key' && caller.key.scope === 'publishable';

async function identify(
  deps: AuthorizeDeps,
  token: string,
  client: string,
  spent: number,
): Promise<Caller | null> {
  if (isSessionToken(token)) {
    refuseOver(spent);
    const session = await deps.findSession(token);
    return session && { kind: 'session', kid: session.kid, session };
  }
  const key = await deps.findApiKey(token, client, spent);
  return key && { kind: 'key', kid: key.kid, key };
}

/** Of a row of the table of routes what this needs. */
interface Admits {
  readonly credential: readonly (KeyScope | 'session')[];
  readonly counted?: Route['counted'] | undefined;
}

/** Rate, then 401, then 403 (contract section 1). @throws {Refusal} */
export async function authorize(
  deps: AuthorizeDeps,
  { headers, limitKey }: Asker,
  { credential, counted }: Admits,
): Promise<Caller> {
  const { limits } = deps;
  const ofClient = counted === 'withdrawal' ? limits.withdrawal : limits.client;
  const token = bearerToken(headers.authorization);
  const caller = token === null ? null : await identify(deps, token, limitKey, ofClient.spent(limitKey));
  const browser = caller !== null && isBrowser(caller);
  if (token !== null && (!caller || browser)) await charge(ofClient.charge, limitKey);
  if (token !== null && !caller) noteRefusal('unknown-key');
  if (!caller) throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
  const id = caller.kind === 'key' ? caller.key.hash : caller.session.principal;
  if (!browser) await charge(limits.key, counted === 'withdrawal' ? `withdraw ${id}` : id);
  // Browsers send Sec-Fetch-Site and let no page's script set or remove it (W3C Fetch Metadata); no backend sends it.
  const inPage = headers['sec-fetch-site'] !== undefined;
  if (inPage && caller.kind === 'key' && !browser) {
    noteRefusal('secret-key-in-page');
    throw new Refusal('secret-key-in-page');
  }
  if (!credential.includes(caller.kind === 'key' ? caller.key.scope : 'session'))
    throw new Refusal('insufficient-scope');
  // All visitors share this bucket: what is refused is not counted in it, nor what any of them needs to withdraw.
  if (browser && counted === undefined) await charge(limits.key, id);
  return caller;
}

/** A session speaks for its own principal and for nobody else. @throws {Refusal} */
export function requireOwnPrincipal(caller: Caller, principalId: string): void {
  if (caller.kind === 'session' && caller.session.principalId !== principalId)
    throw new Refusal('not-your-principal');
}
