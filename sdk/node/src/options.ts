import { ConsentError } from './errors.ts';

export interface ClientOptions {
  /** gpd's base address, such as https://id.shop.example; several are tried in their order. */
  readonly url: string | readonly string[];
  /** An API key of the tenant, `gpd_sk_…`. */
  readonly key: string;
  /** Total time of a reading call with its retries; by default 2000. */
  readonly timeoutMs?: number | undefined;
  /** Total time of a writing call; by default 10000. */
  readonly writeTimeoutMs?: number | undefined;
  /** Attempts after the first; by default 2. */
  readonly retries?: number | undefined;
  /** The result of a check that cannot be decided: `deny` (a denial with reason `unavailable`), or `error`. */
  readonly onUnavailable?: 'deny' | 'error' | undefined;
  /** The `data-domain` of your banner, such as `.shop.example`, for the cookies that `currentState` and `may` return. */
  readonly cookieDomain?: string | undefined;
  /** Another clock for the age of cookies: milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
  /** Another fetch, such as one through a proxy; the global one by default. */
  readonly fetch?: typeof fetch | undefined;
  /** Called with the error of each call that failed, also if it became a denial: for your log. */
  readonly onError?: ((error: ConsentError) => void) | undefined;
}

export interface Settings {
  /** Without trailing slashes; at least one. */
  readonly bases: readonly [string, ...string[]];
  readonly key: string;
  readonly timeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly retries: number;
  readonly onUnavailable: 'deny' | 'error';
  readonly cookieDomain: string | undefined;
  readonly now: () => number;
  readonly fetch: typeof fetch;
  readonly onError: (error: ConsentError) => void;
}

const MAX_MS = 600_000;
/** The maximum for one call, because a browser that waits behind the caller gives up long before. */
const MAX_CALL_MS = 60_000;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

const refuse = (hint: string): ConsentError => new ConsentError('ConsentClient', 'config', { hint });

/** The constructor URL mends what other languages refuse: white space, back slashes, a missing slash. */
const ADDRESS = /^https?:\/\/[^\s\\@?#]+$/i;

function baseOf(url: unknown): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || parsed.port === '0' || !ADDRESS.test(String(url))) {
    throw refuse('url is an http or https address without user info, query and fragment');
  }
  return parsed.origin + parsed.pathname.replace(/\/+$/, '');
}

function basesOf(url: unknown): Settings['bases'] {
  const [first, ...rest] = Array.isArray(url) ? (url as unknown[]) : [url];
  return [baseOf(first), ...rest.map(baseOf)];
}

function checkInteger(
  name: string,
  value: number | undefined,
  fallback: number,
  min: number,
  max: number,
): number {
  if (value === undefined) return fallback;
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw refuse(`${name} is an integer from ${min} to ${max}`);
}

const checkTimeout = (name: string, value: number | undefined, fallback: number): number =>
  checkInteger(name, value, fallback, 1, MAX_MS);

/** @throws {ConsentError} config */
export const checkCallTimeout = (value: number): number =>
  checkInteger('timeoutMs', value, value, 1, MAX_CALL_MS);

const COOKIE_DOMAIN = /^\.?[a-z0-9-]+(\.[a-z0-9-]+)*$/i;

/** @throws {ConsentError} config */
export function checkCookieDomain(domain: string | undefined): string | undefined {
  if (domain === undefined || (typeof domain === 'string' && COOKIE_DOMAIN.test(domain))) return domain;
  throw refuse('cookieDomain is a domain such as .shop.example');
}

/** @throws {ConsentError} config; the message names the option and never its value */
export function readOptions(options: ClientOptions): Settings {
  const { url, key, onUnavailable = 'deny' } = options;
  if (typeof key !== 'string' || !VISIBLE_ASCII.test(key))
    throw refuse('key must be an API key of visible ASCII characters (GPD_CONSENT_KEY)');
  if (onUnavailable !== 'deny' && onUnavailable !== 'error') throw refuse('onUnavailable is deny or error');
  return {
    bases: basesOf(url),
    key,
    timeoutMs: checkTimeout('timeoutMs', options.timeoutMs, 2000),
    writeTimeoutMs: checkTimeout('writeTimeoutMs', options.writeTimeoutMs, 10_000),
    retries: checkInteger('retries', options.retries, 2, 0, 10),
    onUnavailable,
    cookieDomain: checkCookieDomain(options.cookieDomain),
    now: options.now ?? Date.now,
    // Looked up at each call, because tools for tests replace the global one later.
    fetch: options.fetch ?? ((...request) => fetch(...request)),
    onError: options.onError ?? (() => {}),
  };
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** @throws {ConsentError} config, naming the variable that is missing */
export function optionsFromEnv(environment: Environment): Pick<ClientOptions, 'url' | 'key'> {
  const read = (name: string): string => {
    const value = environment[name];
    if (value === undefined || value === '') throw refuse(`${name} is not set`);
    return value;
  };
  // No address holds white space, so it can part several.
  return { url: read('GPD_CONSENT_URL').split(/\s+/), key: read('GPD_CONSENT_KEY') };
}
