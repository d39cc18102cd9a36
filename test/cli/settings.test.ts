import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { type Ran, runGpd, tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { startProcess } from '../support/process.ts';
import { selfSigned } from '../support/self-signed.ts';
import { initGpd, startGpd } from '../support/server.ts';

function expectBadConfig(ran: Ran, ...words: readonly RegExp[]): void {
  expect(ran).toMatchObject({ code: 78, stdout: '' });
  for (const word of words) expect(ran.stderr).toMatch(word);
  expect(ran.stderr.trim().split('\n')).toHaveLength(1);
}

let dataDir: string;
beforeAll(async () => {
  dataDir = (await initGpd()).dataDir;
});

const SERVE = ['serve', '--port', '0'];
const runWith = (settings: object, args: readonly string[] = ['tenants', 'list']) =>
  runGpd(args, { env: { GPD_DATA_DIR: dataDir, ...settings } });

function fileOf(name: string, text: string): string {
  const file = join(tempDir('settings'), name);
  writeFileSync(file, text);
  return file;
}

describe.concurrent('an unknown setting', () => {
  it('is refused by every command, and the nearest is named', async () => {
    expectBadConfig(await runWith({ GPD_PROT: '1' }, SERVE), /\bGPD_PROT\b/, /\bGPD_PORT\b/);
    expectBadConfig(await runWith({ GPD_DATADIR: '1' }), /\bGPD_DATADIR\b/, /\bGPD_DATA_DIR\b/);
    const config = ['tenants', 'list', '--config', fileOf('gpd.toml', 'prot = 1\n')];
    expectBadConfig(await runWith({}, config), /\bprot\b/, /\bport\b/);
  });

  it('GPD_CONSENT_URL and GPD_CONSENT_KEY belong to the SDKs and are passed over', async () => {
    const env = { GPD_CONSENT_URL: 'https://x.example', GPD_CONSENT_KEY: 'gpd_sk_x' };
    expect((await runWith(env)).code).toBe(0);
  });
});

describe.concurrent('a bad value', () => {
  it.each([
    'postgres://u:a#b@db.internal/gpd',
    'postgres://u:a/b@db.internal/gpd',
    'postgres://u:1#b@db/gpd',
  ])('%s: says how a password is written, and does not repeat it', async (value) => {
    const ran = await runWith({ GPD_DATABASE_URL: value });
    expectBadConfig(ran, /GPD_DATABASE_URL.*in its password write # as %23/);
    expect(ran.stderr).not.toMatch(/db\.internal|#b/);
  });

  it.each([
    ['GPD_PORT', 'abc', /GPD_PORT.*a whole number from 0 to 65535/],
    ['GPD_PORT', '65536', /GPD_PORT/],
    ['GPD_RATE_INGEST', '0/60', /GPD_RATE_INGEST/],
    ['GPD_MAX_CLOCK_SKEW', '0', /GPD_MAX_CLOCK_SKEW/],
    ['GPD_TRUSTED_PROXIES', '10.0.0.0/33', /GPD_TRUSTED_PROXIES/],
    ['GPD_TRUSTED_PROXIES', '10.0.0.1, foo', /GPD_TRUSTED_PROXIES.*foo is not an address or CIDR/],
    ['GPD_BASE_URL', 'shop.example', /GPD_BASE_URL/],
    ['GPD_BASE_URL', 'https://shop.example/path', /GPD_BASE_URL/],
    ['GPD_DATABASE_URL', 'mysql://host/gpd', /GPD_DATABASE_URL/],
    ['GPD_METRICS_LISTEN', '9100', /GPD_METRICS_LISTEN/],
    ['GPD_WBA_OPEN_DISCOVERY', 'yes', /GPD_WBA_OPEN_DISCOVERY/],
    ['GPD_JA4_HEADER', 'x y', /GPD_JA4_HEADER/],
    ['GPD_LOG_LEVEL', 'loud', /GPD_LOG_LEVEL/],
    ['GPD_OIDC_ISSUER', 'http://issuer.example', /GPD_OIDC_ISSUER/],
    ['GPD_TLS_CERT', '/nowhere/cert.pem', /GPD_TLS_CERT/],
    ['GPD_HOST', '192.0.2.1', /192\.0\.2\.1/],
  ])('%s=%s is 78 and named', async (name, value, message) => {
    // Without --port here, because the flag takes precedence over GPD_PORT.
    expectBadConfig(await runWith({ [name]: value }, name === 'GPD_PORT' ? ['serve'] : SERVE), message);
  });

  it('never says a password that stood in it', async () => {
    const ran = await runWith({ GPD_BASE_URL: 'https://user:hunter2@shop.example' });
    expectBadConfig(ran, /GPD_BASE_URL/);
    expect(ran.stderr).not.toContain('hunter2');
  });

  it('a certificate and a key that are none, or not each other’s, are 78', async () => {
    const [mine = '', other = ''] = (['local', 'named'] as const).map((host) => {
      const out = tempDir('tls');
      for (const [name, text] of Object.entries(selfSigned(host))) writeFileSync(join(out, name), text);
      return out;
    });
    for (const [cert, key] of [
      [join(mine, 'server.crt'), join(other, 'server.key')],
      [join(mine, 'server.key'), join(mine, 'server.key')],
    ])
      expectBadConfig(
        await runWith({ GPD_TLS_CERT: cert, GPD_TLS_KEY: key }, SERVE),
        /GPD_TLS_CERT and GPD_TLS_KEY/,
      );
  });

  it('on a flag is 78 too, and a --config that names no file', async () => {
    expectBadConfig(await runWith({}, ['serve', '--port', 'abc']), /port/i);
    expectBadConfig(await runWith({}, ['tenants', 'list', '--config', 'none.toml']), /none\.toml/);
  });

  it.each([
    ['no TOML', '# a comment\nport = = 1', /gpd\.toml, line 2: /],
    ['a wrong type', 'port = "x"', /port/],
    ['a table', '[port]\na = 1', /gpd\.toml|port/],
  ])('in gpd.toml: %s', async (_name, text, message) => {
    const config = ['tenants', 'list', '--config', fileOf('gpd.toml', text)];
    expectBadConfig(await runWith({}, config), message);
  });
});

describe.concurrent('a secret in a file', () => {
  it('is read, and the setting itself goes before it', () => {
    const GPD_DATABASE_URL_FILE = fileOf('url', 'postgres://gpd:word@db/gpd\n');
    const environment = { GPD_DATABASE_URL_FILE };
    expect(loadConfig({ environment }).database_url).toBe('postgres://gpd:word@db/gpd');
    const GPD_DATABASE_URL = 'postgres://other/gpd';
    const both = { GPD_DATABASE_URL, GPD_DATABASE_URL_FILE };
    expect(loadConfig({ environment: both }).database_url).toBe(GPD_DATABASE_URL);
  });

  it.each(['', 'mysql://gpd:word@db/gpd'])(
    'is refused when the file has %j, which is not said',
    async (text) => {
      const ran = await runWith({ GPD_DATABASE_URL_FILE: fileOf('url', text) });
      expectBadConfig(ran, /GPD_DATABASE_URL .*postgres:/);
      expect(ran.stderr).not.toContain('word');
    },
  );
});

describe.concurrent('the port', () => {
  it('is that of the flag, then of the environment, then of gpd.toml', async () => {
    const [flag, environment, file] = [await freePort(), await freePort(), await freePort()];
    const text = `port = ${file}\ndata_dir = "${dataDir}"\nrate_ingest = "off"\n`;
    const cwd = join(fileOf('gpd.toml', text), '..');
    const portOf = async (args: readonly string[], settings: Record<string, string>): Promise<number> => {
      const gpd = await startProcess({ dataDir, cwd, args, settings });
      await gpd.stop();
      expect(gpd.url).toBe(`http://127.0.0.1:${gpd.port}`);
      return gpd.port;
    };
    expect(await portOf([], {})).toBe(file);
    expect(await portOf(['--port', String(flag)], { GPD_PORT: String(environment) })).toBe(flag);
    const configFile = join(cwd, 'gpd.toml');
    expect(loadConfig({ environment: { GPD_PORT: String(environment) }, configFile }).port).toBe(environment);
  });

  it('that is taken is said in a sentence that names it and what to do', async () => {
    const gpd = await startGpd();
    const ran = await runGpd(['serve', '--port', String(gpd.port)], { env: { GPD_DATA_DIR: dataDir } });
    expectBadConfig(ran, new RegExp(`127\\.0\\.0\\.1:${gpd.port}`), /--port/);
    expect(ran.stderr).not.toMatch(/EADDRINUSE/);
    await gpd.stop();
  });
});
