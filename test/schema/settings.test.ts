import { describe, expect, it } from 'vitest';
import { environmentName, SETTING_NAMES, SETTINGS, type SettingName } from '../../src/schema/settings.ts';

const parse = (name: SettingName, value: unknown): unknown => {
  const result = SETTINGS[name].schema.safeParse(value);
  return result.success ? result.data : 'refused';
};

/** Contract section 11 and section 8. */
const CONTRACT =
  'GPD_DATA_DIR GPD_DATABASE_URL GPD_HOST GPD_PORT GPD_BASE_URL GPD_AUTHORITIES GPD_TLS_CERT GPD_TLS_KEY GPD_TRUSTED_PROXIES GPD_MASTER_KEY_FILE GPD_OIDC_ISSUER GPD_OIDC_AUDIENCE GPD_OIDC_ROLE_CLAIM GPD_OIDC_TENANT_CLAIM GPD_OIDC_VISITOR_CLAIM GPD_OIDC_PRINCIPAL_CLAIM GPD_CONSOLE_CLIENT_ID GPD_CONSOLE_CLIENT_SECRET_FILE GPD_MAX_CLOCK_SKEW GPD_EPOCH_DAYS GPD_MIN_IDENTITY_BITS GPD_MAX_NETWORKS_PER_DAY GPD_K_ANONYMITY_FLOOR GPD_RATE_INGEST GPD_RATE_PRIVACY GPD_RATE_CONSENT GPD_WBA_OPEN_DISCOVERY GPD_JA4_HEADER GPD_MMDB_FILE GPD_METRICS_LISTEN GPD_LOG_LEVEL'.split(
    ' ',
  );

describe('the settings', () => {
  it('are at least those of the contract', () => {
    expect(SETTING_NAMES.map(environmentName)).toEqual(expect.arrayContaining(CONTRACT));
  });

  it('have defaults that they take themselves, and a line of words', () => {
    for (const name of SETTING_NAMES) {
      expect(parse(name, SETTINGS[name].fallback), name).not.toBe('refused');
      expect(SETTINGS[name].doc, name).toMatch(/^\S.*\.$/);
    }
  });

  it('default as the contract says', () => {
    const defaults = Object.fromEntries(
      SETTING_NAMES.map((name) => [name, parse(name, SETTINGS[name].fallback)]),
    );
    expect(defaults).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      max_clock_skew: 300,
      epoch_days: 30,
      min_identity_bits: 12,
      max_networks_per_day: 20,
      k_anonymity_floor: 50,
      rate_ingest: { points: 600, seconds: 60 },
      rate_privacy: { points: 30, seconds: 60 },
      rate_consent: { points: 600_000, seconds: 60 },
      trusted_proxies: [],
      wba_open_discovery: false,
      oidc_issuer: null,
    });
  });

  it.each<[SettingName, unknown, unknown]>([
    ['rate_ingest', 'off', null],
    ['rate_ingest', '1/1', { points: 1, seconds: 1 }],
    ['rate_ingest', '0/60', 'refused'],
    ['rate_ingest', '600/0', 'refused'],
    ['rate_ingest', '600/60s', 'refused'],
    ['port', '0', 0],
    ['port', '65535', 65_535],
    ['port', '65536', 'refused'],
    ['port', 'http', 'refused'],
    ['max_clock_skew', '0', 'refused'],
    ['base_url', 'https://gpd.example/', 'https://gpd.example'],
    ['base_url', 'ftp://gpd.example', 'refused'],
    ['base_url', 'gpd.example', 'refused'],
    ['trusted_proxies', '10.0.0.0/8, ::1  192.0.2.1', ['10.0.0.0/8', '::1', '192.0.2.1']],
    ['trusted_proxies', '', []],
    ['trusted_proxies', ['10.0.0.0/8'], ['10.0.0.0/8']],
    ['wba_open_discovery', 'true', true],
    ['wba_open_discovery', 'yes', 'refused'],
    ['ja4_header', 'X-JA4', 'X-JA4'],
    ['ja4_header', 'X JA4', 'refused'],
    ['log_level', 'loud', 'refused'],
  ])('%s = %j', (name, value, expected) => {
    expect(parse(name, value)).toEqual(expected);
  });
});

describe('an issuer', () => {
  it.each([
    'https://id.example',
    'http://localhost:9000',
    'http://127.0.0.1:9000',
    'http://[::1]:9000',
    // A slash at its end stays: iss has to equal it.
    'https://shop.eu.auth0.com/',
  ])('may be %s', (issuer) => {
    expect(parse('oidc_issuer', issuer)).toBe(issuer);
  });

  it.each([
    'http://id.example',
    'http://127.id.example',
    'http://127.0.0.1.id.example',
    'http://localhost.id.example',
    'id.example',
    'ftp://id.example',
    'https://id.example/?tenant=1',
    'https://id.example/#top',
    'https://user@id.example',
    ' https://id.example',
  ])('may not be %j: plain http only on a loopback address', (issuer) => {
    expect(parse('oidc_issuer', issuer)).toBe('refused');
  });
});

describe('the name of a claim', () => {
  it.each(['gpd_role', 'https://gpd.example/role', '/realm_access/roles', 'Rollen im Haus'])(
    'may be %s',
    (name) => {
      expect(parse('oidc_role_claim', name)).toBe(name);
    },
  );

  it.each(['', 'a\nb', 'x'.repeat(257)])('may not be %j', (name) => {
    expect(parse('oidc_tenant_claim', name)).toBe('refused');
  });
});
