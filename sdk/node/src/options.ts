import { ConsentError } from './errors.ts';

export interface ClientOptions {
  /** gpd's base address, such as https://id.shop.example. */
  readonly url: string;
  /** An API key of the tenant, `gpd_sk_…`. */
  readonly key: string;
  /** Whole time of a reading call, retries included; 2000. */
  readonly timeoutMs?: number | undefined;
  /** Whole time of a writing call; 10000. */
  readonly writeTimeoutMs?: number | undefined;
  /** Further attempts after the first; 2. */
  readonly retries?: number | undefined;
  /** What a check that cannot be decided does: `deny` (a denial with reason `unavailable`), or `error`. */
  readonly onUnavailable?: 'deny' | 'error' | undefined;
  /** Another fetch, such as one through a proxy; the global one by default. */
  readonly fetch?: typeof fetch | undefined;
}

export interface Settings {
  /** Without a trailing slash. */
  readonly base: string;
  readonly key: string;
  readonly timeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly retries: number;
  readonly onUnavailable: 'deny' | 'error';
  readonly fetch: typeof fetch;
}

const MAX_MS = 600_000;
/** Of one call: the process that waits is the caller's, and a browser behind it has gone long before. */
const MAX_CALL_MS = 60_000;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

const refuse = (hint: string): ConsentError => new ConsentError('ConsentClient', 'config', { hint });

function baseOf(url: unknown): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null;
  const plain = parsed !== null && parsed.username === '' && parsed.password === '' && parsed.port !== '0';
  if (!plain || !['http:', 'https:'].includes(parsed.protocol) || /[?#]/.test(String(url))) {
    throw refuse('url is an http or https address without user info, query and fragment');
  }
  return parsed.origin + parsed.pathname.replace(/\/+$/, '');
}

function integer(
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
  integer(name, value, fallback, 1, MAX_MS);

/** @throws {ConsentError} config */
export const checkCallTimeout = (value: number): number => integer('timeoutMs', value, value, 1, MAX_CALL_MS);

/** @throws {ConsentError} config; the message names the option and never its value */
export function readOptions(options: ClientOptions): Settings {
  const { url, key, onUnavailable = 'deny' } = options;
  if (typeof key !== 'string' || !VISIBLE_ASCII.test(key))
    throw refuse('key must be an API key of visible ASCII characters (GPD_CONSENT_KEY)');
  if (onUnavailable !== 'deny' && onUnavailable !== 'error') throw refuse('onUnavailable is deny or error');
  return {
    base: baseOf(url),
    key,
    timeoutMs: checkTimeout('timeoutMs', options.timeoutMs, 2000),
    writeTimeoutMs: checkTimeout('writeTimeoutMs', options.writeTimeoutMs, 10_000),
    retries: integer('retries', options.retries, 2, 0, 10),
    onUnavailable,
    fetch: options.fetch ?? fetch,
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
  return { url: read('GPD_CONSENT_URL'), key: read('GPD_CONSENT_KEY') };
}
