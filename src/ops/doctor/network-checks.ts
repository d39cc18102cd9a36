import { baseUrl, type Config } from '../../config.ts';
import { DAY, SECOND } from '../../lib/clock.ts';
import { hostReach, isLoopback } from '../../lib/ip.ts';
import { missingOidcSettings } from '../../rights/oidc.ts';
import { type Checks, type Finding, fail, noneOf, pass, skipped, some, span, warn } from './check.ts';
import type { Facts } from './gather.ts';

/** How the world reaches this server, and what it believes of whom. */

const hostOf = (text: string): string => text.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
const publicUrl = (config: Config): URL => new URL(baseUrl(config));
const isLocal = (config: Config): boolean => isLoopback(publicUrl(config).hostname);

/** Which of the checks of the provider a problem belongs to; the ones after it have nothing to look at. */
const stepOf = (problem: string): number =>
  problem.startsWith('JWKS:') ? 2 : Number(problem.includes('its issuer is not'));

const checkOidc =
  (step: number, good: (keys: number) => string, remedy: string) =>
  ({ oidc }: Facts): Finding => {
    if (!oidc) return skipped('no issuer is set');
    const { problem, usableKeys } = oidc;
    if (problem === null || stepOf(problem) > step) return pass(good(usableKeys));
    return stepOf(problem) === step
      ? fail(problem, remedy)
      : skipped('the provider could not be read so far');
  };

export const NETWORK_CHECKS: Checks = {
  'url.base'({ config }) {
    if (config.base_url !== null) return pass(config.base_url);
    return isLoopback(config.host)
      ? pass('unset, and only this machine can connect')
      : warn('base_url is not set');
  },
  'url.https'({ config }) {
    if (publicUrl(config).protocol === 'https:') return pass('the public origin is https');
    return isLocal(config)
      ? pass('plain http, on this machine only')
      : fail('the public origin is plain http');
  },
  'url.authorities'({ config }) {
    const bad = config.authorities.filter((name) => !/^[^/\s:@]+(?::\d+)?$|^\[[^\]]+\](?::\d+)?$/.test(name));
    if (config.authorities.length === 0) return skipped('no further names');
    return bad.length === 0
      ? pass(some(config.authorities))
      : fail(`${some(bad)} can never be an @authority`);
  },
  'tls.end'({ config }) {
    if (publicUrl(config).protocol !== 'https:') return skipped('the public origin is not https');
    if (config.tls_cert !== null) return pass('gpd terminates TLS');
    return config.trusted_proxies.length > 0
      ? pass('a trusted proxy terminates TLS')
      : fail('no TLS termination is configured');
  },
  'tls.certificate'({ tls, now }) {
    if (!tls) return skipped('gpd does not terminate TLS');
    if (!tls.readable) return fail('GPD_TLS_CERT or GPD_TLS_KEY cannot be read');
    if (!tls.matches) return fail('certificate and key do not belong together');
    if (now < tls.validFrom) return fail('the certificate is not valid yet');
    if (now > tls.validTo) return fail(`the certificate expired ${span(now - tls.validTo)} ago`);
    if (!tls.coversHost) return fail('the certificate does not name the host of the base URL');
    const left = `valid for ${span(tls.validTo - now)}`;
    return tls.validTo - now < 14 * DAY ? warn(left) : pass(left);
  },
  'tls.key'({ tls }) {
    if (!tls?.keyFile) return skipped('gpd does not terminate TLS');
    return (tls.keyFile.mode & 0o007) === 0
      ? pass('other users cannot read its key')
      : fail('anyone can read the TLS key', `chmod o-rwx ${tls.keyFile.path}, and renew it.`);
  },
  'listen.address'({ config }) {
    const where = `${config.host}:${config.port}`;
    if (hostReach(config.host) !== 'public' || config.tls_cert !== null) return pass(where);
    return warn(`plain http on ${where}, which other machines can reach`);
  },
  'proxies.ranges'({ config }) {
    const wide = config.trusted_proxies.filter((range) => Number(range.split('/')[1] ?? '128') < 8);
    if (config.trusted_proxies.length === 0) return skipped('no proxy is trusted');
    return wide.length === 0
      ? pass(some(config.trusted_proxies))
      : fail(`${some(wide)} trusts X-Forwarded-For from any client`);
  },
  'proxies.strangers'({ config, data, now }) {
    const { untrustedForwarded } = data;
    const trusted = config.trusted_proxies.join(' ');
    const recent =
      untrustedForwarded && now - untrustedForwarded.at < DAY && untrustedForwarded.trusted === trusted;
    return recent
      ? fail(
          `a peer that is not trusted sent X-Forwarded-For ${span(Math.max(0, now - untrustedForwarded.at))} ago`,
        )
      : pass('no untrusted peer sent X-Forwarded-For in the last day');
  },
  'proxies.ja4'({ config }) {
    if (config.ja4_header === null) return skipped('no JA4 header is set');
    return config.trusted_proxies.length > 0
      ? pass(`${config.ja4_header}, from a trusted proxy`)
      : warn('no proxy is trusted to send JA4');
  },
  'limits.rates'({ config }) {
    const off = (['rate_ingest', 'rate_privacy', 'rate_consent'] as const).filter(
      (name) => config[name] === null,
    );
    return off.length === 0
      ? pass('every rate limit is set')
      : warn(`off: ${off.map((name) => `GPD_${name.toUpperCase()}`).join(', ')}`);
  },
  'networks.mmdb'({ config, mmdb, now }) {
    if (config.mmdb_file === null) return skipped('GPD_MMDB_FILE is not set');
    if (!mmdb?.readable)
      return fail('GPD_MMDB_FILE cannot be read as a MaxMind database', 'Download it again.');
    const age = `built ${span(Math.max(0, now - mmdb.builtAt))} ago`;
    return now - mmdb.builtAt > 60 * DAY ? warn(age, 'Download a newer one, by a timer.') : pass(age);
  },
  'metrics.listen'({ config }) {
    const listen = config.metrics_listen;
    if (listen === null) return skipped('metrics are off');
    return hostReach(hostOf(listen)) !== 'public'
      ? pass(listen)
      : fail(`other machines can read the metrics at ${listen}`);
  },
  'server.health'({ server, version }) {
    if (server.problem?.includes('certificate')) return fail(server.problem);
    if (!server.health) return skipped(`no server answers at ${server.url}`);
    return server.health.version === version
      ? pass(`gpd ${version} answers at ${server.url}`)
      : warn(`gpd ${server.health.version} runs, and this is ${version}`);
  },
  'server.ready'({ server }) {
    if (!server.health) return skipped(`no server answers at ${server.url}`);
    return noneOf(server.notReady, 'it is ready', fail('not ready'));
  },
  'server.degraded'({ server }) {
    if (!server.health) return skipped(`no server answers at ${server.url}`);
    return server.degraded.length === 0
      ? pass('nothing works slower than it should')
      : warn(
          some(server.degraded),
          'Look for decryptor-thread-ended in its log. Restart gpd serve if this stays for minutes, and report it.',
        );
  },
  'oidc.issuer'({ config }) {
    if (config.oidc_issuer !== null) return pass(config.oidc_issuer);
    return warn('every /privacy request is answered 401', missingOidcSettings(config).join(' '));
  },
  'oidc.audience'({ config }) {
    if (config.oidc_issuer === null) return skipped('no issuer is set');
    return config.oidc_audience !== null
      ? pass(config.oidc_audience)
      : fail('every /privacy request is answered 401', missingOidcSettings(config).join(' '));
  },
  'oidc.discovery': checkOidc(
    0,
    () => 'the discovery document is there',
    'Check GPD_OIDC_ISSUER, and that this machine reaches the identity provider.',
  ),
  'oidc.same-issuer': checkOidc(
    1,
    () => 'it names the issuer that is set',
    'Set GPD_OIDC_ISSUER exactly as the provider writes it in its discovery document.',
  ),
  'oidc.keys': checkOidc(
    2,
    (keys) => `${keys} usable keys`,
    'Have the provider sign with ES256, or with RS256 and 2048 bits or more.',
  ),
  'oidc.clock'({ oidc, config }) {
    if (oidc?.skewMs == null) return skipped('the provider sent no Date header');
    const skew = Math.abs(oidc.skewMs);
    const said = `${span(Math.max(SECOND, skew))} apart from the identity provider`;
    if (skew > config.max_clock_skew * SECOND) return fail(said);
    return skew > 30 * SECOND ? warn(said) : pass('the clocks agree');
  },
  'console.client'({ config, consoleSecret }) {
    if (config.console_client_id === null && config.console_client_secret_file === null)
      return skipped('the console has no client');
    const remedy = 'Set GPD_OIDC_ISSUER, GPD_CONSOLE_CLIENT_ID and GPD_CONSOLE_CLIENT_SECRET_FILE together.';
    if (config.console_client_id === null) return fail('there is a secret and no client id', remedy);
    if (config.oidc_issuer === null) return fail('there is a client and no issuer', remedy);
    if (!consoleSecret?.readable) return fail('the file of the client’s secret cannot be read', remedy);
    return (consoleSecret.mode & 0o077) === 0
      ? pass(config.console_client_id)
      : fail(
          'other users can read the client’s secret',
          `chmod 0600 ${consoleSecret.path}, and make a new one.`,
        );
  },
};
