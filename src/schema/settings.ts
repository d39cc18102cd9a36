import { z } from 'zod';
import { parseDailyWindow } from '../lib/clock.ts';
import { succeeds } from '../lib/errors.ts';
import { isLoopback, parseRange } from '../lib/ip.ts';
import { parseUrl } from '../lib/text.ts';
import { kidSchema } from './bundle.ts';

/** The kinds of values that settings take. */

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
/** A chance: 0 to 1. */
const chance = z.coerce.number('a number from 0 to 1').min(0).max(1);
const text = z.string().min(1);
const words = z.union([
  z.array(z.string()),
  z.string().transform((text) => text.split(/[\s,]+/).filter((part) => part !== '')),
]);
const isRange = (text: string): boolean => succeeds(() => parseRange(text));
const ranges = words.superRefine((texts, context) => {
  const bad = texts.find((text) => !isRange(text));
  if (bad !== undefined) context.addIssue(`${bad} is not an address or CIDR`);
});
const flag = z.union(
  [z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')],
  'write true or false',
);

const postgresUrl = z.string().superRefine((text, context) => {
  if (!/^postgres(?:ql)?:\/\/./.test(text)) context.addIssue('a URL that begins with postgres://');
  else if ((parseUrl(text)?.hash ?? '#') !== '')
    context.addIssue(
      'not a valid postgres:// URL: in its password write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25',
    );
});

const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(parseUrl(text)?.protocol ?? ''), 'an http or https URL')
  .transform((text) => text.replace(/\/+$/, ''));

/**
 * `smtp://` uses STARTTLS, `smtps://` TLS from the first byte. The error leaves out the value: it may contain
 * a password.
 */
const smtpUrl = z.string().refine((text) => {
  const url = parseUrl(text);
  const { protocol = '', hostname = '', pathname = '', search = '', hash = '' } = url ?? {};
  return /^smtps?:$/.test(protocol) && hostname !== '' && /^\/?$/.test(pathname) && search + hash === '';
}, 'smtps://user:password@host:465 or smtp://host:587, without a path or a query');

/** `gpd@shop.example` or `Shop <gpd@shop.example>` */
const mailFrom = z
  .string()
  .regex(/^(?:[^<>\p{Cc}]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/u, 'an address, or Name <address>');

/** `VKEY@URL`; the parts of the key are checked where it is used. */
const witnesses = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(',').map((part) => part.trim()))])
  .transform((texts) => texts.filter((text) => text !== '').map((text) => text.replace(/\/+$/, '')))
  .superRefine((texts, context) => {
    const bad = texts.find((text) => !/^[^+]+\+[0-9a-f]{8}\+[\w+/]+=*@https?:\/\/[^@?#\s]+$/.test(text));
    if (bad !== undefined)
      context.addIssue('write VKEY@URL, separated by commas; the URL without user or query');
    if (texts.length > 64) context.addIssue('at most 64 witnesses');
  });

/** An origin as browsers define it. It is printed and signed, so it must contain no secret. */
export const publicOrigin = httpUrl.refine((text) => {
  const { username, password, pathname, search, hash } = new URL(text);
  return [username, password, search, hash].every((part) => part === '') && pathname === '/';
}, 'an origin, https://host or https://host:port, without a user, a path or a query');

const origins = words.pipe(
  z.array(publicOrigin.refine((text) => !text.includes('*'), 'a wildcard matches no page; name each origin')),
);

const dailyWindow = z.string().transform((text, context) => {
  const window = parseDailyWindow(text);
  if (window) return window;
  context.addIssue('write HH:MM-HH:MM, for instance 02:00-04:00');
  return z.NEVER;
});

/** Kept exactly as given: a token's `iss` has to equal it, and some providers end theirs with a slash. */
const issuer = z
  .string()
  .refine((text) => {
    const url = parseUrl(text);
    return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  }, 'an issuer must be https, except on a loopback address')
  .refine((text) => !/[?#@\s]/.test(text), 'an issuer has no query, fragment, user or white space');

/** The name of a claim as it is, or a JSON pointer. */
const claim = z
  .string()
  .regex(/^[^\p{Cc}]{1,256}$/u, 'the name of a claim, or a JSON pointer such as /realm_access/roles');

/**
 * Every setting of the server: environment name GPD_X_Y, gpd.toml key x_y. `docs/settings.md` is generated
 * from it.
 */

function setting<Schema extends z.ZodType>(schema: Schema, fallback: z.input<Schema>, doc: string) {
  return { schema, fallback, doc } as const;
}

const limit = (fallback: string, counted: string) =>
  setting(rate, fallback, `${counted}: COUNT/SECONDS, or off.`);

/** A setting that is null if it is not set. */
const nullable = <Schema extends z.ZodType>(schema: Schema, doc: string) => ({
  schema: schema.nullable(),
  fallback: null,
  doc,
});

const optional = (doc: string) => nullable(text, doc);

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const SETTINGS = {
  data_dir: setting(
    text,
    './gpd-data',
    'The directory of the master key, of SQLite’s database, and of the logs `erasures.log` and `checkpoints.log`. Under systemd the state directory is the default.',
  ),
  init_tenant: nullable(
    kidSchema,
    'Tenant that `gpd serve` makes, with the installation, on an empty data directory or database. Later starts change nothing.',
  ),
  init_origin: setting(origins, [], 'Origins of that tenant, separated by commas.'),
  database_url_file: optional('File with the value of GPD_DATABASE_URL, which holds a password.'),
  database_url: nullable(
    postgresUrl,
    'postgres://… for several nodes; unset: what GPD_DATABASE_URL_FILE holds, else the systemd credential `database-url`, else SQLite in the data directory.',
  ),
  migrate_database_url: nullable(
    postgresUrl,
    'The same database as the role that owns its tables, for migrations alone; unset: GPD_DATABASE_URL.',
  ),
  host: setting(text, '127.0.0.1', 'Address to listen on.'),
  port: setting(wholeNumber(0, 65535), 8080, 'Port to listen on; 0 takes a free one.'),
  base_url: nullable(publicOrigin, 'The public origin; http://HOST:PORT when unset.'),
  authorities: setting(
    words,
    [],
    'Further public names; these and the host of the base URL are what `@authority` is compared with.',
  ),
  tls_cert: optional('PEM file of the certificate chain, to serve https without a proxy.'),
  tls_key: optional('PEM file of the private key of that certificate.'),
  trusted_proxies: setting(
    ranges,
    [],
    'CIDR list of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed. None by default.',
  ),
  master_key_file: optional(
    'File of the master key; unset: the systemd credential `master-key`, else master.key in the data directory.',
  ),
  oidc_issuer: nullable(
    issuer,
    'Issuer of the bearer tokens for /privacy and the console. Unset: /privacy answers 401, and invited staff sign in to the console with passkeys.',
  ),
  oidc_audience: optional('Audience that a bearer token must name. Unset: /privacy answers 401.'),
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
  console_client_id: optional('OIDC client of the web console.'),
  console_client_secret_file: optional(
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
  collision_risk: setting(
    chance,
    0.01,
    'An id on a further network of the day needs attestation when another device is likelier than this: 0 to 1.',
  ),
  k_anonymity_floor: setting(
    wholeNumber(2, 1_000_000),
    50,
    'Below this number of visitors, uniqueness is given only as a band.',
  ),
  max_connections: setting(
    wholeNumber(1, 1_000_000),
    500,
    'Connections that one client IP may hold; further ones are closed. Trusted proxies have no limit.',
  ),
  answer_timeout: setting(
    wholeNumber(1, 3600),
    60,
    'Seconds in which a client has to read its answer; a download may take longer while it moves. Past twice this time the connection is closed.',
  ),
  rate_ingest: limit('600/60', 'Ingest requests per client IP'),
  rate_public: limit(
    '3000/60',
    'Requests per client IP that no other limit counts, on each node: scripts, pages, the open log, requests without a credential ([Limits](limits.md))',
  ),
  rate_privacy: limit(
    '30/60',
    'Requests per client IP to /me, /privacy/*, /case, /case/answer, /case/complain, the form of /my-data and passkeys (/_fp/attest/v1/*), all together',
  ),
  rate_login: limit(
    '60/60',
    'Sign-ins to the console per client IP: /console/login, /console/callback, /console/join and /console/passkey together',
  ),
  rate_consent: limit('600000/60', 'Consent API requests per key, its withdrawals counted apart'),
  rate_consent_client: limit('600/60', 'Requests with a publishable key or an invalid token per client IP'),
  rate_consent_new: limit(
    '60/60',
    'Grants and denials per client IP by browsers that the tenant does not know',
  ),
  rate_consent_withdraw: limit(
    '60/60',
    'Withdrawals with a publishable key per client IP, counted apart from all else',
  ),
  wba_open_discovery: setting(
    flag,
    false,
    'Fetch Web Bot Auth directories that are not on the list, in the background.',
  ),
  wba_tags: setting(
    words,
    ['web-bot-auth'],
    'Tags of HTTP message signatures that are judged, separated by commas; `agent-browser-auth` and `agent-payer-auth` say what an agent came for.',
  ),
  ja4_header: nullable(
    z.string().regex(/^[A-Za-z0-9-]{1,64}$/, 'the name of a header: letters, digits and -'),
    'Header in which a trusted proxy hands over the JA4 fingerprint.',
  ),
  mmdb_file: optional(
    'A local MaxMind database that tells hosting providers’ networks; it only moves the score.',
  ),
  metrics_listen: nullable(
    z.string().regex(/^(?:\[[^\]]+\]|[^:\s]+):\d{1,5}$/, 'write HOST:PORT, for instance 127.0.0.1:9100'),
    'HOST:PORT of the Prometheus listener; off by default.',
  ),
  erasure_lines_days: setting(
    wholeNumber(60, 36_500),
    730,
    'Days after which a line of erasures.log is dropped. A backup that is older than a dropped line cannot be restored.',
  ),
  rewrite_window: nullable(
    dailyWindow,
    'HH:MM-HH:MM in UTC, for instance 02:00-04:00: when gpd may rewrite a large SQLite file, which blocks writes, once a day at most and only if an erasure needs it; unset: only by `gpd erase resume`.',
  ),
  witnesses: setting(
    witnesses,
    [],
    'Witnesses that are asked to cosign checkpoints (C2SP tlog-witness): VKEY@URL, separated by commas.',
  ),
  witness_policy: nullable(
    wholeNumber(1, 64),
    'How many witnesses must have cosigned a checkpoint before it counts as witnessed; all by default.',
  ),
  smtp_url_file: optional('File with the value of GPD_SMTP_URL, which holds a password.'),
  smtp_url: nullable(
    smtpUrl,
    'Mail relay for notices: smtps://user:password@host:465, or smtp://host:587 with STARTTLS, which only a loopback address may lack. Unset: what GPD_SMTP_URL_FILE holds, else no mail is sent.',
  ),
  smtp_from: nullable(mailFrom, 'Sender of notices; unset: gpd at the host of the base URL.'),
  log_level: setting(z.enum(LOG_LEVELS), 'info', 'fatal, error, warn, info, debug, trace or silent.'),
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [Name in SettingName]: z.output<(typeof SETTINGS)[Name]['schema']> };

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function environmentName(name: SettingName): string {
  return `GPD_${name.toUpperCase()}`;
}
