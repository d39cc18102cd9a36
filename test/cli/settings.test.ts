import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { gpdJson, type Ran, runGpd, runProgram, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
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

describe.concurrent('an unknown setting', () => {
  it.each([
    ['GPD_PROT', 'GPD_PORT'],
    ['GPD_DATADIR', 'GPD_DATA_DIR'],
    ['GPD_MAX_CLOCKSKEW', 'GPD_MAX_CLOCK_SKEW'],
  ])('%s is refused at start, and %s is named', async (name, nearest) => {
    const args = name === 'GPD_PROT' ? ['serve', '--port', '0'] : ['tenants', 'list'];
    const ran = await runGpd(args, { env: { GPD_DATA_DIR: dataDir, [name]: '1' } });
    expectBadConfig(ran, new RegExp(`\\b${name}\\b`), new RegExp(`\\b${nearest}\\b`));
  });

  it('GPD_CONSENT_URL and GPD_CONSENT_KEY belong to the SDKs and are passed over', async () => {
    const env = { GPD_DATA_DIR: dataDir, GPD_CONSENT_URL: 'https://x.example', GPD_CONSENT_KEY: 'gpd_sk_x' };
    expect((await runGpd(['tenants', 'list'], { env })).code).toBe(0);
  });

  it('in gpd.toml is refused in the same way', async () => {
    const file = join(tempDir('toml'), 'gpd.toml');
    writeFileSync(file, 'prot = 1\n');
    const ran = await runGpd(['tenants', 'list', '--config', file], { env: { GPD_DATA_DIR: dataDir } });
    expectBadConfig(ran, /\bprot\b/, /\bport\b/);
  });
});

describe.concurrent('a bad value', () => {
  it.each([
    'postgres://u:a#b@db.internal/gpd',
    'postgres://u:a/b@db.internal/gpd',
    'postgres://u:1#b@db/gpd',
  ])('%s: says how a password is written, and does not repeat it', async (value) => {
    const ran = await runGpd(['tenants', 'list'], {
      env: { GPD_DATA_DIR: dataDir, GPD_DATABASE_URL: value },
    });
    expectBadConfig(ran, /GPD_DATABASE_URL.*in its password write # as %23/);
    expect(ran.stderr).not.toMatch(/db\.internal|#b/);
  });

  it.each([
    ['GPD_PORT', 'abc'],
    ['GPD_PORT', '65536'],
    ['GPD_RATE_INGEST', '0/60'],
    ['GPD_RATE_INGEST', 'unlimited'],
    ['GPD_MAX_CLOCK_SKEW', '0'],
    ['GPD_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['GPD_TRUSTED_PROXIES', 'proxy.example'],
    ['GPD_BASE_URL', 'shop.example'],
    ['GPD_BASE_URL', 'https://shop.example/path'],
    ['GPD_DATABASE_URL', 'mysql://host/gpd'],
    ['GPD_DATABASE_URL', 'gpd.db'],
    ['GPD_METRICS_LISTEN', '9100'],
    ['GPD_WBA_OPEN_DISCOVERY', 'yes'],
    ['GPD_JA4_HEADER', 'x y'],
    ['GPD_LOG_LEVEL', 'loud'],
    ['GPD_OIDC_ISSUER', 'http://issuer.example'],
    ['GPD_TLS_CERT', '/nowhere/cert.pem'],
    ['GPD_HOST', '192.0.2.1'],
  ])('%s=%s is 78 and named', async (name, value) => {
    // Without --port here, because the flag takes precedence over GPD_PORT.
    const flags = name === 'GPD_PORT' ? [] : ['--port', '0'];
    const ran = await runGpd(['serve', ...flags], { env: { GPD_DATA_DIR: dataDir, [name]: value } });
    expectBadConfig(ran, name === 'GPD_HOST' ? /192\.0\.2\.1/ : new RegExp(name));
  });

  it('never says a password that stood in it', async () => {
    const env = { GPD_DATA_DIR: dataDir, GPD_BASE_URL: 'https://user:hunter2@shop.example' };
    const ran = await runGpd(['serve', '--port', '0'], { env });
    expectBadConfig(ran, /GPD_BASE_URL/);
    expect(ran.stderr).not.toContain('hunter2');
  });

  it('is said to every command, and in words', async () => {
    const ran = await runGpd(['tenants', 'list'], {
      env: { GPD_DATA_DIR: dataDir, GPD_TRUSTED_PROXIES: '10.0.0.1, foo' },
    });
    expectBadConfig(ran, /GPD_TRUSTED_PROXIES.*foo is not an address or CIDR/);
    const port = await runGpd(['tenants', 'list'], { env: { GPD_DATA_DIR: dataDir, GPD_PORT: 'abc' } });
    expectBadConfig(port, /a whole number from 0 to 65535/);
  });

  it('a certificate and a key that are none, or not each other’s, are 78', async () => {
    const [mine = '', other = ''] = [['localhost', '127.0.0.1'], ['localhost']].map((names) => {
      const out = tempDir('tls');
      for (const [name, text] of Object.entries(selfSigned(names))) writeFileSync(join(out, name), text);
      return out;
    });
    for (const [cert, key] of [
      [join(mine, 'server.crt'), join(other, 'server.key')],
      [join(mine, 'server.key'), join(mine, 'server.key')],
    ] as const) {
      const env = { GPD_DATA_DIR: dataDir, GPD_TLS_CERT: cert, GPD_TLS_KEY: key };
      expectBadConfig(await runGpd(['serve', '--port', '0'], { env }), /GPD_TLS_CERT and GPD_TLS_KEY/);
    }
  });

  it('on a flag is 78 too', async () => {
    expectBadConfig(await runGpd(['serve', '--port', 'abc'], { env: { GPD_DATA_DIR: dataDir } }), /port/i);
  });

  it.each([
    ['no TOML', '# a comment\nport = = 1'],
    ['a wrong type', 'port = "x"'],
    ['a table', '[port]\na = 1'],
  ])('in gpd.toml: %s', async (name, text) => {
    const cwd = tempDir('cwd');
    writeFileSync(join(cwd, 'gpd.toml'), text);
    const ran = await runGpd(['tenants', 'list'], { cwd, env: { GPD_DATA_DIR: dataDir } });
    expectBadConfig(ran, name === 'no TOML' ? /gpd\.toml, line 2: / : /gpd\.toml|port/);
  });

  it('--config that names no file', async () => {
    const ran = await runGpd(['tenants', 'list', '--config', 'none.toml'], {
      env: { GPD_DATA_DIR: dataDir },
    });
    expectBadConfig(ran, /none\.toml/);
  });
});

describe.concurrent('a secret in a file', () => {
  const writeFile = (text: string): string => {
    const file = join(tempDir('secret'), 'database-url');
    writeFileSync(file, text);
    return file;
  };

  it('is read, and the setting itself goes before it', () => {
    const GPD_DATABASE_URL_FILE = writeFile('postgres://gpd:word@db/gpd\n');
    expect(loadConfig({ environment: { GPD_DATABASE_URL_FILE } }).database_url).toBe(
      'postgres://gpd:word@db/gpd',
    );
    const GPD_DATABASE_URL = 'postgres://other/gpd';
    const environment = { GPD_DATABASE_URL, GPD_DATABASE_URL_FILE };
    expect(loadConfig({ environment }).database_url).toBe(GPD_DATABASE_URL);
  });

  it.each(['', 'mysql://gpd:word@db/gpd'])(
    'is refused when the file has %j, which is not said',
    async (text) => {
      const env = { GPD_DATA_DIR: dataDir, GPD_DATABASE_URL_FILE: writeFile(text) };
      const ran = await runGpd(['tenants', 'list'], { env });
      expectBadConfig(ran, /GPD_DATABASE_URL .*postgres:/);
      expect(ran.stderr).not.toContain('word');
    },
  );
});

describe.concurrent('precedence', () => {
  it('flag, then environment, then gpd.toml', async () => {
    const cwd = tempDir('cwd');
    const [flag, environment, file] = [await freePort(), await freePort(), await freePort()];
    writeFileSync(join(cwd, 'gpd.toml'), `port = ${file}\ndata_dir = "${dataDir}"\nrate_ingest = "off"\n`);
    const portOf = async (args: readonly string[], settings: Record<string, string>): Promise<number> => {
      const gpd = await startProcess({ dataDir, cwd, args, settings });
      await gpd.stop();
      expect(gpd.url).toBe(`http://127.0.0.1:${gpd.port}`);
      return gpd.port;
    };
    expect(await portOf([], {})).toBe(file);
    expect(await portOf([], { GPD_PORT: String(environment) })).toBe(environment);
    expect(await portOf(['--port', String(flag)], { GPD_PORT: String(environment) })).toBe(flag);
  });
});

describe.concurrent('a port that is taken', () => {
  it('is said in a sentence that names it and what to do', async () => {
    const gpd = await startGpd();
    const ran = await runProgram(['serve', '--port', String(gpd.port)], { env: { GPD_DATA_DIR: dataDir } });
    expectBadConfig(ran, new RegExp(`127\\.0\\.0\\.1:${gpd.port}`), /--port/);
    expect(ran.stderr).not.toMatch(/EADDRINUSE/);
    expect(await gpdJson(['tenants', 'list'], { env: { GPD_DATA_DIR: gpd.dataDir } })).toMatchObject([
      { kid: KID },
    ]);
    await gpd.stop();
  });
});
