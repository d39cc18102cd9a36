import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { open } from 'maxmind';
import { validityOf } from '../../agents/directory.ts';
import { listDirectories } from '../../agents/store.ts';
import { baseUrl, type Config } from '../../config.ts';
import { EgressRefused } from '../../egress/guard.ts';
import { greetRelay, parseRelay } from '../../egress/smtp.ts';
import { DAY, HOUR, isoTime } from '../../lib/clock.ts';
import { tryOr } from '../../lib/errors.ts';
import { hostReach, isLoopback } from '../../lib/ip.ts';
import { countOutbox } from '../../notify/outbox-store.ts';
import { listWebhooks } from '../../notify/webhooks-store.ts';
import { missingOidc } from '../../rights/oidc-service.ts';
import { environmentName, SETTING_NAMES, type SettingName } from '../../schema/settings.ts';
import { NO_ANSWER, NO_GPD } from '../server-state-service.ts';
import { readForwardedNote } from '../untrusted-forwarded-files.ts';
import { type Check, ofTenants } from './check.ts';
import type { DoctorContext } from './context-service.ts';
import { about, type Findings, fail, pass, Skipped, span, warn } from './finding.ts';
import { oldestWaiting } from './inspect-store.ts';

/** Checks of this server with its addresses and proxies, and of the services that it calls. */

const publicUrl = (config: Config): URL => new URL(baseUrl(config));

const AUTHORITY = /^[^/\s:@]+(?::\d+)?$|^\[[^\]]+\](?::\d+)?$/;

function* checkBase({ config }: DoctorContext): Findings {
  const { protocol, hostname } = publicUrl(config);
  if (config.base_url === null && !isLoopback(config.host)) {
    const remedy = 'Set GPD_BASE_URL to the public origin: signatures and logs are named after it.';
    yield warn('base_url is not set', remedy);
  }
  if (protocol !== 'https:' && !isLoopback(hostname)) {
    yield fail(
      'the public origin is plain http',
      'Put TLS in front, and set GPD_BASE_URL to https://…: over plain http, browsers give the agent no cryptography.',
    );
  }
  const bad = config.authorities.filter((name) => !AUTHORITY.test(name));
  yield* about(bad, fail('never an @authority', 'Write host or host:port in GPD_AUTHORITIES.'));
}

const hostOf = (text: string): string => text.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');

function* checkListen({ config }: DoctorContext): Findings {
  const { host, port, tls_cert: cert, trusted_proxies: proxies, metrics_listen: metrics } = config;
  if (publicUrl(config).protocol === 'https:' && cert === null && proxies.length === 0) {
    const remedy = 'Name the proxy in GPD_TRUSTED_PROXIES, or set GPD_TLS_CERT and GPD_TLS_KEY.';
    yield fail('the public origin is https, and nothing terminates TLS', remedy);
  }
  if (hostReach(host) === 'public' && cert === null) {
    const remedy = 'Listen on 127.0.0.1 behind the proxy, or set GPD_TLS_CERT and GPD_TLS_KEY.';
    yield warn(`plain http on ${host}:${port}, which other machines can reach`, remedy);
  }
  if (metrics !== null && hostReach(hostOf(metrics)) === 'public') {
    const remedy = 'Set GPD_METRICS_LISTEN to 127.0.0.1 or a private address.';
    yield fail(`other machines can read the metrics at ${metrics}`, remedy);
  }
}

function readCertificate(config: Config, cert: string, key: string) {
  const leaf = new X509Certificate(readFileSync(cert));
  const host = hostOf(publicUrl(config).hostname);
  return {
    matches: leaf.checkPrivateKey(createPrivateKey(readFileSync(key))),
    covers: (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined,
    from: Date.parse(leaf.validFrom),
    to: Date.parse(leaf.validTo),
  };
}

const RENEW = 'Renew it (gpd tls csr), name both files and restart the server.';

function* checkCertificate({ config, now, file }: DoctorContext): Findings {
  const { tls_cert: cert, tls_key: key } = config;
  if (cert === null || key === null) throw new Skipped('gpd does not terminate TLS');
  if (((file(key)?.mode ?? 0) & 0o007) !== 0)
    yield fail('anyone can read the TLS key', `Run chmod o-rwx ${key}, and renew it.`);
  const leaf = tryOr(() => readCertificate(config, cert, key), null);
  if (!leaf) {
    const remedy = 'Name two PEM files that this user may read, or make new ones: gpd tls csr.';
    yield fail('GPD_TLS_CERT or GPD_TLS_KEY cannot be read', remedy);
    return;
  }
  if (!leaf.matches)
    yield fail(
      'certificate and key do not belong together',
      'Name the key that the certificate was made for.',
    );
  if (!leaf.covers) {
    const remedy = `Set GPD_BASE_URL to a host that it names, or get one for ${publicUrl(config).hostname}: gpd tls csr.`;
    yield fail('the certificate does not name the host of the base URL', remedy);
  }
  if (now < leaf.from) {
    const remedy = `Check the clock (timedatectl): it is valid from ${isoTime(leaf.from)}.`;
    yield fail('the certificate is not valid yet', remedy);
  }
  const remainingMs = leaf.to - now;
  if (remainingMs < 0) yield fail(`the certificate expired ${span(-remainingMs)} ago`, RENEW);
  else if (remainingMs < 14 * DAY) yield warn(`valid for ${span(remainingMs)}`, RENEW);
  yield pass(`valid for ${span(remainingMs)}`);
}

function* checkProxies({ config, now }: DoctorContext): Findings {
  const { trusted_proxies: proxies, ja4_header: ja4 } = config;
  const wideRanges = proxies.filter((range) => Number(range.split('/')[1] ?? '128') < 8);
  const remedy = 'Name only the addresses of your proxies in GPD_TRUSTED_PROXIES.';
  yield* about(wideRanges, fail('X-Forwarded-For is trusted from any client', remedy));
  const note = readForwardedNote(config);
  if (note && now - note.at < DAY && note.trusted === proxies.join(' ')) {
    yield fail(
      `a peer that is not trusted sent X-Forwarded-For ${span(now - note.at)} ago`,
      'If it is your proxy, add it to GPD_TRUSTED_PROXIES: until then all clients behind it share one rate limit.',
    );
  }
  if (ja4 !== null && proxies.length === 0)
    yield warn('no proxy is trusted to send JA4', 'Name the proxy in GPD_TRUSTED_PROXIES.');
}

function* checkRates({ config }: DoctorContext): Findings {
  const unlimited = (['rate_ingest', 'rate_privacy', 'rate_consent'] as const).filter(
    (one) => config[one] === null,
  );
  const settings = unlimited.map((name) => `GPD_${name.toUpperCase()}`);
  yield* about(settings, warn('off', 'Set COUNT/SECONDS, unless a proxy in front already limits requests.'));
}

async function* checkNetworks({ config, now }: DoctorContext): Findings {
  if (config.mmdb_file === null) throw new Skipped('GPD_MMDB_FILE is not set');
  const found = await open(config.mmdb_file).catch(() => null);
  if (!found) {
    yield fail('GPD_MMDB_FILE cannot be read as a MaxMind database', 'Download it again.');
    return;
  }
  const age = now - found.metadata.buildEpoch.getTime();
  if (age > 60 * DAY) yield warn(`built ${span(age)} ago`, 'Download a newer one, by a timer.');
  yield pass(`built ${span(age)} ago`);
}

async function* checkServer({ server, version }: DoctorContext): Findings {
  const { url, problem, health, notReady } = await server();
  if (problem?.includes('certificate'))
    yield fail(problem, 'Restart gpd serve, with a valid certificate: tls.certificate says more.');
  if (!health && problem === NO_GPD)
    yield fail(
      `another program answers at ${url}`,
      'Stop it, or choose another port with GPD_PORT: gpd serve cannot listen there. If it is gpd with other TLS settings, restart it.',
    );
  if (problem === NO_ANSWER)
    yield fail(
      `something listens at ${url} and does not answer`,
      'If it is gpd, look at its load. If not, stop it, or choose another port with GPD_PORT.',
    );
  if (!health) throw new Skipped(`no server answers at ${url}`);
  yield* about(notReady, fail('not ready', 'Look at its log for reload-failed.'));
  if (health.version !== version)
    yield warn(`gpd ${health.version} runs, and this is ${version}`, 'Restart the server.');
  yield pass(`gpd ${version} answers at ${url}`);
}

async function* checkDegraded({ server }: DoctorContext): Findings {
  const { url, health, degraded } = await server();
  if (!health) throw new Skipped(`no server answers at ${url}`);
  for (const detail of degraded) {
    if (detail === 'writes')
      yield fail('the database takes no writes', 'Look for disk-full in its log: docs/operate/disk-full.md.');
    else if (detail === 'housekeeping')
      yield warn('a job was not done for long', 'Look at jobs.failing, and for sweep-failed in its log.');
    else
      yield warn(
        detail,
        'Look for decryptor-thread-ended in its log. Restart gpd serve if this stays for minutes, and report it.',
      );
  }
}

function remedyOfProvider(problem: string): string {
  if (problem.startsWith('JWKS:'))
    return 'Have the provider sign with ES256, or with RS256 and 2048 bits or more.';
  return problem.includes('its issuer is not')
    ? 'Set GPD_OIDC_ISSUER exactly as the provider writes it in its discovery document.'
    : 'Check GPD_OIDC_ISSUER, and that this machine reaches the identity provider.';
}

const CLAIM_SETTINGS = SETTING_NAMES.filter((name) => /^oidc_\w+_claim$/.test(name)) as ClaimSetting[];
type ClaimSetting = Extract<SettingName, `oidc_${string}_claim`>;
/** A URL, or a pointer that begins with a slash, is meant as it is written. */
const DOTTED = /^[^/:]+\.[^/:]+$/;

async function* checkIssuer({ config, provider }: DoctorContext): Findings {
  const missing = missingOidc(config);
  const createFinding = config.oidc_issuer === null ? warn : fail;
  if (missing.length > 0)
    yield createFinding(
      'people with an account cannot sign in for their data: no identity provider',
      `If your site has accounts, set ${missing.join(', and ')}.`,
    );
  const paths = CLAIM_SETTINGS.filter((name) => config.oidc_issuer !== null && DOTTED.test(config[name]));
  for (const name of paths) {
    const claim = config[name];
    yield warn(
      `${environmentName(name)} is ${claim}: one claim of that name, not a path`,
      `If the claim is nested, as Keycloak's roles are, write /${claim.replaceAll('.', '/')}: docs/operate/sign-in.md.`,
    );
  }
  const problem = (await provider())?.problem ?? null;
  if (problem !== null) yield fail(problem, remedyOfProvider(problem));
}

function* checkConsole({ config, file }: DoctorContext): Findings {
  const { console_client_id: id, console_client_secret_file: path, oidc_issuer: issuer } = config;
  if (id === null && path === null) throw new Skipped('the console has no client');
  const secret = file(path);
  if (id === null || issuer === null || !secret?.readable) {
    yield fail(
      'one of issuer, client and readable secret is missing',
      'Set GPD_OIDC_ISSUER, GPD_CONSOLE_CLIENT_ID and GPD_CONSOLE_CLIENT_SECRET_FILE together.',
    );
  }
  if (secret && (secret.mode & 0o077) !== 0) {
    const remedy = `Run chmod 0600 ${secret.path}, and make a new one.`;
    yield fail('other users can read the client’s secret', remedy);
  }
}

async function* checkDirectories({ data, now }: DoctorContext): Findings {
  const directories = await listDirectories(await data());
  if (directories.length === 0) throw new Skipped('no directory is listed');
  const fetched = directories.filter(({ source }) => source !== 'pinned');
  const outdated = fetched.filter(({ fetchedAt }) => fetchedAt === null || now - fetchedAt > 2 * DAY);
  yield* about(
    outdated.map(({ url, failure }) => `${url} (${failure ?? 'never tried'})`),
    warn(
      'not fetched for two days',
      'Run gpd agents refresh, and check that this server can make https requests.',
    ),
  );
  const isUsable = ({ nbf, exp }: ReturnType<typeof validityOf>) => nbf <= now / 1000 && now / 1000 < exp;
  const keyless = directories.filter(({ keys }) => !keys.map(validityOf).some(isUsable));
  yield* about(
    keyless.map(({ url }) => url),
    warn('no usable key', 'Run gpd agents refresh, or pin the keys with gpd agents add URL --jwks FILE.'),
  );
}

async function* checkWebhooks({ data, now }: DoctorContext): Findings {
  const database = await data();
  const webhooks = await listWebhooks(database);
  if (webhooks.length === 0) throw new Skipped('no webhooks are set up');
  for (const { kid, id, url } of webhooks) {
    const rows = (await countOutbox(database, kid)).filter(({ webhook }) => webhook === id);
    const countOf = (state: string): number => rows.find((row) => row.state === state)?.count ?? 0;
    const [name, abandoned] = [`${kid} ${id}`, countOf('failed')];
    if (abandoned > 0)
      yield warn(`abandoned: ${name} (${abandoned})`, 'Fix the target, then run gpd webhooks replay.');
    const age = now - ((await oldestWaiting(database, kid, id)) ?? now);
    if (age > HOUR) {
      const detail = `deliveries wait: ${name} (${countOf('waiting')}, the oldest for ${span(age)})`;
      yield warn(detail, 'Check that gpd serve runs and that the target answers 2xx.');
    }
    if (url.startsWith('http:'))
      yield warn(`sent over plain http: ${name}`, 'Add the target with an https URL, and remove this one.');
  }
}

/** Connects and signs in to the mail relay without sending a mail. */
async function* checkRelay(context: DoctorContext): Findings {
  const { smtp_url: url } = context.config;
  if (url === null) {
    const unsent = warn('notify.email is set and GPD_SMTP_URL is not', 'Set GPD_SMTP_URL to a mail relay.');
    yield* ofTenants(context, unsent, ({ settings }) => settings['notify.email'].length > 0);
    return;
  }
  const problem = await greetRelay(parseRelay(url)).then(
    () => null,
    (error: unknown) => (error instanceof EgressRefused ? error.message : 'it cannot be used'),
  );
  const remedy = 'Check GPD_SMTP_URL, the relay, its certificate and its password; mail waits for two days.';
  if (problem !== null) yield fail(problem, remedy);
}

export const NETWORK_CHECKS: readonly Check[] = [
  { id: 'url.base', title: 'the public origin is https, or this machine alone', run: checkBase },
  { id: 'listen.address', title: 'no other machine gets plain http or metrics', run: checkListen },
  { id: 'tls.certificate', title: 'the certificate is valid for the base URL', run: checkCertificate },
  { id: 'proxies.trust', title: 'the proxies are trusted, and nobody else', run: checkProxies },
  { id: 'limits.rates', title: 'every rate limit is set', run: checkRates },
  { id: 'networks.mmdb', title: 'the database of networks is new', run: checkNetworks },
  { id: 'server.health', title: 'the server is ready', run: checkServer },
  { id: 'server.degraded', title: 'nothing works slower than it should', run: checkDegraded },
  { id: 'oidc.issuer', title: 'the identity provider is set and has keys', run: checkIssuer },
  { id: 'console.client', title: 'the console can sign people in', run: checkConsole },
  {
    id: 'agents.directories',
    title: 'each directory is up to date, with a usable key',
    run: checkDirectories,
  },
  { id: 'webhooks.deliveries', title: 'every delivery arrives, over https', run: checkWebhooks },
  { id: 'mail.relay', title: 'mail is sent, or nobody asks for it', run: checkRelay },
];
