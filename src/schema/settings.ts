import { z } from 'zod';
import { parseDuration } from '../lib/duration.ts';
import { isLoopback, parseRange } from '../lib/ip.ts';

/** Every setting of the server: environment name GPD_X_Y, gpd.toml key x_y. `docs/settings.md` is generated from it. */

export interface RateSpec {
  readonly points: number;
  readonly seconds: number;
}

const rate = z.string().transform((text, context): RateSpec | null => {
  if (text === 'off') return null;
  const match = /^(\d{1,9})\/(\d{1,6})$/.exec(text);
  const [points, seconds] = [Number(match?.[1]), Number(match?.[2])];
  if (match && points > 0 && seconds > 0) return { points, seconds };
  context.addIssue('write COUNT/SECONDS, for instance 600/60, or off');
  return z.NEVER;
});

const wholeNumber = (min: number, max: number) =>
  z.coerce.number(`a whole number from ${min} to ${max}`).int().min(min).max(max);
const optionalText = z.string().min(1).nullable();
const words = z.union([
  z.array(z.string()),
  z.string().transform((text) => text.split(/[\s,]+/).filter((part) => part !== '')),
]);
const isRange = (text: string): boolean => {
  try {
    parseRange(text);
    return true;
  } catch {
    return false;
  }
};
const ranges = words.superRefine((texts, context) => {
  const bad = texts.find((text) => !isRange(text));
  if (bad !== undefined) context.addIssue(`${bad} is not an address or CIDR`);
});
const flag = z.union(
  [z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')],
  'write true or false',
);

const postgresUrl = z
  .string()
  .refine(
    (text) => /^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text),
    'a URL that begins with postgres://',
  );

const httpUrl = z
  .string()
  .refine(
    (text) => /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : ''),
    'an http or https URL',
  )
  .transform((text) => text.replace(/\/+$/, ''));

/** What a browser calls an origin: nothing of it is secret, as it is printed and signed. */
const publicOrigin = httpUrl.refine((text) => {
  const { username, password, pathname, search, hash } = new URL(text);
  return [username, password, search, hash].every((part) => part === '') && pathname === '/';
}, 'an origin, https://host or https://host:port, without a user, a path or a query');

/** Kept to the letter: a token's `iss` has to equal it, and some providers end theirs with a slash. */
const issuer = z
  .string()
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  }, 'an issuer must be https, except on a loopback address')
  .refine((text) => !/[?#@\s]/.test(text), 'an issuer has no query, fragment, user or white space');

/** The name of a claim as it is, or a JSON pointer. */
const claim = z
  .string()
  .regex(/^[^\p{Cc}]{1,256}$/u, 'the name of a claim, or a JSON pointer such as /realm_access/roles');

interface SettingSpec<Schema extends z.ZodType = z.ZodType> {
  readonly schema: Schema;
  readonly fallback: z.input<Schema>;
  readonly doc: string;
}

function setting<Schema extends z.ZodType>(
  schema: Schema,
  fallback: z.input<Schema>,
  doc: string,
): SettingSpec<Schema> {
  return { schema, fallback, doc };
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const SETTINGS = {
  data_dir: setting(
    z.string().min(1),
    './gpd-data',
    'Where the database, the master key and backups lie. Under systemd the state directory is the default.',
  ),
  database_url: setting(
    postgresUrl.nullable(),
    null,
    'postgres://… for several nodes; unset: the systemd credential `database-url`, else SQLite in the data directory.',
  ),
  host: setting(z.string().min(1), '127.0.0.1', 'Address to listen on.'),
  port: setting(wholeNumber(0, 65535), 8080, 'Port to listen on; 0 takes a free one.'),
  base_url: setting(publicOrigin.nullable(), null, 'The public origin; http://HOST:PORT when unset.'),
  authorities: setting(
    words,
    [],
    'Further public names; these and the host of the base URL are what `@authority` is compared with.',
  ),
  tls_cert: setting(optionalText, null, 'PEM file of the certificate chain, to serve https without a proxy.'),
  tls_key: setting(optionalText, null, 'PEM file of the private key of that certificate.'),
  trusted_proxies: setting(
    ranges,
    [],
    'CIDR list of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed. None by default.',
  ),
  master_key_file: setting(
    optionalText,
    null,
    'File of the master key; unset: the systemd credential `master-key`, else master.key in the data directory.',
  ),
  oidc_issuer: setting(
    issuer.nullable(),
    null,
    'Issuer of the bearer tokens for /privacy and the console. Unset: /privacy answers 401.',
  ),
  oidc_audience: setting(
    optionalText,
    null,
    'Audience that a bearer token must name. Unset: /privacy answers 401.',
  ),
  oidc_role_claim: setting(
    claim,
    'gpd_role',
    'Claim with the role or roles: subject, reviewer, dpo. Like the others a name, or a JSON pointer: /realm_access/roles.',
  ),
  oidc_tenant_claim: setting(claim, 'gpd_tenant', 'Claim with the tenant (kid).'),
  oidc_visitor_claim: setting(
    claim,
    'gpd_visitor',
    'Claim with a visitorId that the identity provider vouches for.',
  ),
  oidc_principal_claim: setting(claim, 'sub', 'Claim that equals the principalId.'),
  console_client_id: setting(optionalText, null, 'OIDC client of the web console.'),
  console_client_secret_file: setting(
    optionalText,
    null,
    'File with the secret of that client; unset: the systemd credential `console-client-secret`.',
  ),
  max_clock_skew: setting(
    wholeNumber(1, 86_400),
    300,
    'Seconds that a bundle may be older or newer than the server.',
  ),
  epoch_days: setting(
    wholeNumber(1, 3650),
    30,
    'Days after which visitorIds rotate. A change gives every device a new one at once; the old ones still lead to it.',
  ),
  min_identity_bits: setting(
    wholeNumber(1, 64),
    12,
    'An id with a larger share than 2^-bits of a tenant’s week needs attestation.',
  ),
  max_networks_per_day: setting(
    wholeNumber(1, 1_000_000),
    20,
    'An id seen from more client networks a day needs attestation.',
  ),
  k_anonymity_floor: setting(
    wholeNumber(2, 1_000_000),
    50,
    'Below so many visitors uniqueness is told in bands only.',
  ),
  rate_ingest: setting(rate, '600/60', 'Ingest requests per client IP: COUNT/SECONDS, or off.'),
  rate_privacy: setting(rate, '30/60', 'Requests to /me and /privacy per client IP: COUNT/SECONDS, or off.'),
  rate_consent: setting(rate, '600000/60', 'Consent API requests per key: COUNT/SECONDS, or off.'),
  wba_open_discovery: setting(
    flag,
    false,
    'Fetch Web Bot Auth directories that are not on the list, in the background.',
  ),
  ja4_header: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9-]{1,64}$/, 'the name of a header: letters, digits and -')
      .nullable(),
    null,
    'Header in which a trusted proxy hands over the JA4 fingerprint.',
  ),
  mmdb_file: setting(
    optionalText,
    null,
    'A local MaxMind database that tells hosting providers’ networks; it only moves the score.',
  ),
  metrics_listen: setting(
    z
      .string()
      .regex(/^(?:\[[^\]]+\]|[^:\s]+):\d{1,5}$/, 'write HOST:PORT, for instance 127.0.0.1:9100')
      .nullable(),
    null,
    'HOST:PORT of the Prometheus listener; off by default.',
  ),
  disk_reserve: setting(
    wholeNumber(0, 1_000_000),
    32,
    'Megabytes kept free on the disk of an SQLite database, so that erasures work when it is full; 0 for none.',
  ),
  otlp_endpoint: setting(
    httpUrl.nullable(),
    null,
    'OTLP/HTTP collector that gets the metrics once a minute, for instance http://127.0.0.1:4318; off by default.',
  ),
  log_level: setting(z.enum(LOG_LEVELS), 'info', 'fatal, error, warn, info, debug, trace or silent.'),
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [Name in SettingName]: z.output<(typeof SETTINGS)[Name]['schema']> };

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function environmentName(name: SettingName): string {
  return `GPD_${name.toUpperCase()}`;
}

/** Durations on the command line: 30s, 15m, 12h, 7d. */
export const durationSchema = z.string().transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== null) return ms;
  context.addIssue('write a duration as 30s, 15m, 12h or 7d');
  return z.NEVER;
});
