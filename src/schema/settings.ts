import { z } from 'zod';
import { kidSchema } from './bundle.ts';
import * as kinds from './setting-kinds.ts';

/** Every setting of the server: environment name GPD_X_Y, gpd.toml key x_y. `docs/settings.md` is generated from it. */

function setting<Schema extends z.ZodType>(schema: Schema, fallback: z.input<Schema>, doc: string) {
  return { schema, fallback, doc } as const;
}

const limit = (fallback: string, counted: string) =>
  setting(kinds.rate, fallback, `${counted}: COUNT/SECONDS, or off.`);

/** Null where it is not set. */
const nullable = <Schema extends z.ZodType>(schema: Schema, doc: string) => ({
  schema: schema.nullable(),
  fallback: null,
  doc,
});

const optional = (doc: string) => nullable(kinds.text, doc);

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const SETTINGS = {
  data_dir: setting(
    kinds.text,
    './gpd-data',
    'Where the database, the master key and backups lie. Under systemd the state directory is the default.',
  ),
  init_tenant: nullable(
    kidSchema,
    'Tenant that `gpd serve` makes, with the installation, on an empty data directory or database. Later starts change nothing.',
  ),
  init_origin: setting(kinds.origins, [], 'Origins of that tenant, separated by commas.'),
  database_url_file: optional('File with the value of GPD_DATABASE_URL, which holds a password.'),
  database_url: nullable(
    kinds.postgresUrl,
    'postgres://… for several nodes; unset: what GPD_DATABASE_URL_FILE holds, else the systemd credential `database-url`, else SQLite in the data directory.',
  ),
  migrate_database_url: nullable(
    kinds.postgresUrl,
    'The same database as the role that owns its tables, for migrations alone; unset: GPD_DATABASE_URL.',
  ),
  host: setting(kinds.text, '127.0.0.1', 'Address to listen on.'),
  port: setting(kinds.wholeNumber(0, 65535), 8080, 'Port to listen on; 0 takes a free one.'),
  base_url: nullable(kinds.publicOrigin, 'The public origin; http://HOST:PORT when unset.'),
  authorities: setting(
    kinds.words,
    [],
    'Further public names; these and the host of the base URL are what `@authority` is compared with.',
  ),
  tls_cert: optional('PEM file of the certificate chain, to serve https without a proxy.'),
  tls_key: optional('PEM file of the private key of that certificate.'),
  trusted_proxies: setting(
    kinds.ranges,
    [],
    'CIDR list of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed. None by default.',
  ),
  master_key_file: optional(
    'File of the master key; unset: the systemd credential `master-key`, else master.key in the data directory.',
  ),
  oidc_issuer: nullable(
    kinds.issuer,
    'Issuer of the bearer tokens for /privacy and the console. Unset: /privacy answers 401.',
  ),
  oidc_audience: optional('Audience that a bearer token must name. Unset: /privacy answers 401.'),
  oidc_role_claim: setting(
    kinds.claim,
    'gpd_role',
    'Claim with the role or roles: subject, reviewer, dpo. Like the others a name, or a JSON pointer: /realm_access/roles.',
  ),
  oidc_tenant_claim: setting(kinds.claim, 'gpd_tenant', 'Claim with the tenant (kid).'),
  oidc_visitor_claim: setting(
    kinds.claim,
    'gpd_visitor',
    'Claim with a visitorId that the identity provider vouches for.',
  ),
  oidc_principal_claim: setting(kinds.claim, 'sub', 'Claim that equals the principalId.'),
  console_client_id: optional('OIDC client of the web console.'),
  console_client_secret_file: optional(
    'File with the secret of that client; unset: the systemd credential `console-client-secret`.',
  ),
  max_clock_skew: setting(
    kinds.wholeNumber(1, 86_400),
    300,
    'Seconds that a bundle may be older or newer than the server.',
  ),
  epoch_days: setting(
    kinds.wholeNumber(1, 3650),
    30,
    'Days after which visitorIds rotate. A change gives every device a new one at once; the old ones still lead to it.',
  ),
  min_identity_bits: setting(
    kinds.wholeNumber(1, 64),
    12,
    'An id with a larger share than 2^-bits of a tenant’s week needs attestation.',
  ),
  max_networks_per_day: setting(
    kinds.wholeNumber(1, 1_000_000),
    20,
    'An id seen from more client networks a day needs attestation.',
  ),
  collision_risk: setting(
    kinds.chance,
    0.01,
    'An id on a further network of the day needs attestation when another device is likelier than this: 0 to 1.',
  ),
  k_anonymity_floor: setting(
    kinds.wholeNumber(2, 1_000_000),
    50,
    'Below this number of visitors, uniqueness is given only as a band.',
  ),
  rate_ingest: limit('600/60', 'Ingest requests per client IP'),
  rate_privacy: limit('30/60', 'Requests to /me and /privacy per client IP'),
  rate_login: limit('60/60', 'Sign-ins to the console (/console/login and /console/callback) per client IP'),
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
    kinds.flag,
    false,
    'Fetch Web Bot Auth directories that are not on the list, in the background.',
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
    kinds.wholeNumber(60, 36_500),
    730,
    'Days after which a line of erasures.log is dropped. A backup that is older than a dropped line cannot be restored.',
  ),
  rewrite_window: nullable(
    kinds.dailyWindow,
    'HH:MM-HH:MM in UTC, for instance 02:00-04:00: when gpd may rewrite a large SQLite file, which blocks writes, once a day at most and only if an erasure needs it; unset: only by `gpd erase resume`.',
  ),
  witnesses: setting(
    kinds.witnesses,
    [],
    'Witnesses that are asked to cosign checkpoints (C2SP tlog-witness): VKEY@URL, separated by commas.',
  ),
  witness_policy: nullable(
    kinds.wholeNumber(1, 64),
    'How many witnesses must have cosigned a checkpoint before it counts as witnessed; all by default.',
  ),
  smtp_url_file: optional('File with the value of GPD_SMTP_URL, which holds a password.'),
  smtp_url: nullable(
    kinds.smtpUrl,
    'Mail relay for notices: smtps://user:password@host:465, or smtp://host:587 with STARTTLS, which only a loopback address may lack. Unset: what GPD_SMTP_URL_FILE holds, else no mail is sent.',
  ),
  smtp_from: nullable(kinds.mailFrom, 'Sender of notices; unset: gpd at the host of the base URL.'),
  log_level: setting(z.enum(LOG_LEVELS), 'info', 'fatal, error, warn, info, debug, trace or silent.'),
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Settings = { readonly [Name in SettingName]: z.output<(typeof SETTINGS)[Name]['schema']> };

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function environmentName(name: SettingName): string {
  return `GPD_${name.toUpperCase()}`;
}
