import { cookieValues } from '../http/cookies.ts';
import type { AskedFrom, SessionBinding } from '../ingest/ports.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import { decryptText, encryptText } from '../lib/gcm.ts';
import { hmacSha256, sha256Text } from '../lib/hash.ts';
import type { Random } from '../lib/random.ts';
import { ROUTES } from '../schema/routes.ts';
import { challengeKeyOf, makeChallenge } from './challenge.ts';
import type { OpenedToken } from './presented.ts';
import type { DeviceKey } from './proof.ts';

/**
 * A session that a browser bound to a key of its device (W3C dbsc-1, ADR 0051). All of it is encrypted and kept by the browser: as
 * the session's identifier for as long as gp_session lives, and as a cookie for five minutes after each proof of the key.
 */

export const COOKIE_NAME = 'gp_bound';
const LIFE_MS = { id: 30 * DAY, cookie: 5 * MINUTE };
const MAX_COOKIES = 4;
/** Where a token, or a bundle, is taken: nowhere else is the cookie sent, nor waited for by the browser. */
const PATHS = ['/_fp/', ROUTES.me.path, ROUTES.myData.path, ROUTES.link.path];
const attributesAt = (path: string): string => `HttpOnly; Secure; SameSite=Strict; Path=${path}`;

/** With the visit whose consent is read again at each refresh. */
export interface Binding extends Omit<OpenedToken, 'session'> {
  readonly origin: string;
  /** Of the session that was bound. */
  readonly root: string;
  readonly key: DeviceKey;
}
type Kept = keyof typeof LIFE_MS;

export interface Keyring {
  readonly serverSecret: Uint8Array;
  readonly random: Random;
}

const keyOf = (serverSecret: Uint8Array): Buffer => hmacSha256(serverSecret, 'gpd/bound-session/v1');

export function encryptBinding(keys: Keyring, use: Kept, binding: Binding, now: number): string {
  const text = JSON.stringify([now + LIFE_MS[use], binding]);
  return encryptText(keyOf(keys.serverSecret), keys.random, use, text);
}

/** Null for every cause alike. */
export function decryptBinding(secret: Uint8Array, use: Kept, ciphertext: string, now: number) {
  const text = decryptText(keyOf(secret), use, ciphertext);
  if (text === null) return null;
  const [until, binding] = JSON.parse(text) as [number, Binding];
  return now < until ? binding : null;
}

/** A session that may be bound ends with a dot, and with the root where it is: what is bound to it is bound to that too. */
export const isBindable = (session: string): boolean => session.includes('.');
export const hasRoot = (session: string): boolean => isBindable(session) && !session.endsWith('.');
export const rootOf = (session: string): string =>
  hasRoot(session) ? `${session.split('.')[1]}` : sha256Text(session);

/** JSON session instructions. */
export const instructionsOf = (id: string) => ({
  session_identifier: id,
  refresh_url: ROUTES.refreshSession.path,
  scope: { include_site: false, scope_specification: [] },
  credentials: PATHS.map((path) => ({
    type: 'cookie',
    name: COOKIE_NAME,
    attributes: attributesAt(path),
  })),
});

export function boundCookies(keyring: Keyring, binding: Binding, now: number): string[] {
  const value = encryptBinding(keyring, 'cookie', binding, now);
  return PATHS.map(
    (path) => `${COOKIE_NAME}=${value}; ${attributesAt(path)}; Max-Age=${LIFE_MS.cookie / 1000}`,
  );
}

/** The roots whose keys this browser has proven a moment ago, to this tenant and from this origin. */
export function provenRoots(secret: Uint8Array, cookies: readonly string[], asked: AskedFrom, now: number) {
  const opened = cookies.slice(0, MAX_COOKIES).map((cookie) => decryptBinding(secret, 'cookie', cookie, now));
  return opened.flatMap((one) => (one?.kid === asked.kid && one.origin === asked.origin ? one.root : []));
}

/** What ingest asks. */
export function makeSessionBinding(keys: Keyring): Omit<SessionBinding, 'holds'> {
  const { serverSecret, random } = keys;
  return {
    root: (cookie, asked, now) =>
      provenRoots(serverSecret, cookieValues(cookie, COOKIE_NAME), asked, now)[0] ?? '',
    offer({ kid, origin, token }, now) {
      const bound = { token, kid, ceremony: 'bind', rpId: origin } as const;
      const challenge = makeChallenge(challengeKeyOf(keys), random, now, bound);
      return `(ES256);path="${ROUTES.bindSession.path}";challenge="${challenge}";authorization="${origin} ${token}"`;
    },
  };
}
