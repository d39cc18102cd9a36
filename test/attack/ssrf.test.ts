import { type AddressInfo, createServer, type Server } from 'node:net';
import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { fetchSigningKeys } from '../../src/egress/oidc-discovery.ts';
import { postWebhook } from '../../src/egress/send.ts';
import { createAgent, signedHeaders } from '../agents/support/agent.ts';
import { type DirectoryServer, startDirectory } from '../egress/support/server.ts';
import { KID } from '../support/constants.ts';
import { execute } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { signJws } from '../support/jws.ts';
import { startIdp } from '../support/oidc.ts';
import { type GpdProcess, startProcess } from '../support/process.ts';
import { createBundle } from '../support/seal.ts';
import { tell } from './support/size.ts';

/** gpd never connects to a stranger's address inside the perimeter: a listener there hears nothing. */

let bait: Server;
let port = 0;
let heard = 0;
beforeAll(async () => {
  bait = createServer((socket) => {
    heard += 1;
    socket.destroy();
  });
  // Every address of this machine, IPv4 and IPv6.
  await new Promise<void>((resolve) => bait.listen(0, '::', resolve));
  ({ port } = bait.address() as AddressInfo);
});
afterAll(() => void bait.close());

/** This machine and its surroundings, in the spellings that URL parsers and resolvers know. */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '0.0.0.0',
  '0',
  '①②⑦.⓪.⓪.①',
  '%31%32%37.0.0.1',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'ip6-localhost',
  hostname(),
  'a@127.0.0.1',
  '169.254.169.254',
  '10.0.0.1',
  '[fe80::1]',
  '[fd00::1]',
];

describe('directories of agents', () => {
  it('that a signature names are not looked for inside, with open discovery', async () => {
    const gpd = await startProcess({
      settings: { GPD_WBA_OPEN_DISCOVERY: 'true', GPD_AUTHORITIES: 'gpd.example' },
    });
    heard = 0;
    const target = gpd.targets[0]!;
    // A header holds ASCII.
    const hosts = HOSTS.filter((name) => /^[\x21-\x7e]+$/.test(name));
    for (const host of hosts) {
      const agent = { ...createAgent(), origin: `https://${host}:${port}` };
      const now = Math.floor(Date.now() / 1000);
      const headers = signedHeaders(agent, {
        host: 'gpd.example',
        scheme: 'https',
        params: { created: String(now), expires: String(now + 60) },
      });
      expectCore(await post(gpd.url, createBundle(target), headers), 'ok');
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(heard).toBe(0);
    expect(gpd.logs()).not.toContain('"fault"');
    tell('ssrf', `${hosts.length} directories inside were named, none was asked`);
    await gpd.stop();
  });

  it('that an operator adds by mistake are not fetched', async () => {
    const gpd = await startProcess();
    heard = 0;
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]', '2130706433']) {
      await gpd.cli(['agents', 'add', `https://${host}:${port}`]);
    }
    expect(heard).toBe(0);
    await gpd.stop();
  });
});

describe('webhooks', () => {
  let gpd: GpdProcess;
  beforeAll(async () => {
    gpd = await startProcess();
  });
  afterAll(() => gpd.stop());

  it('whose targets lie inside are never called without --allow-private', async () => {
    heard = 0;
    let added = 0;
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:7f00:1]', '0177.0.0.1']) {
      const { code, stderr } = await gpd.cli(['webhooks', 'add', KID, `https://${host}:${port}/hook`]);
      if (code !== 0) continue;
      added += 1;
      expect(stderr).toContain('without --allow-private nothing is sent');
    }
    const plain = await gpd.cli(['webhooks', 'add', KID, `http://127.0.0.1:${port}/`]);
    expect(plain.code).toBe(2);
    expect(added).toBeGreaterThan(0);
    await vi.waitFor(
      async () => {
        expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
        const rows = await execute(
          gpd.dataDir,
          'SELECT failure FROM webhook_outbox WHERE failure IS NOT NULL',
        );
        expect(rows.length).toBeGreaterThanOrEqual(added);
        for (const { failure } of rows) expect(failure).toMatch(/not public/);
      },
      { timeout: 20_000, interval: 500 },
    );
    expect(heard).toBe(0);
  });

  it.each(HOSTS)('%s is refused before a byte is sent', async (host) => {
    heard = 0;
    const call = (url: string) => postWebhook({ url, allowPrivate: false }, '{}', {});
    await expect(call(`https://${host}:${port}/`)).rejects.toThrow();
    expect(heard).toBe(0);
  });

  it.each(['http:', 'file:', 'ftp:', 'gopher:', 'data:', 'ws:'])('%s is no way out', async (scheme) => {
    await expect(
      postWebhook({ url: `${scheme}//127.0.0.1:${port}/`, allowPrivate: false }, '{}', {}),
    ).rejects.toThrow();
    expect(heard).toBe(0);
  });
});

describe('identity providers', () => {
  let provider: DirectoryServer;
  beforeAll(async () => {
    provider = await startDirectory();
  });
  afterAll(() => provider.close());

  it.each([301, 302, 303, 307, 308])('a redirect by %s is not followed', async (status) => {
    heard = 0;
    provider.answer = (response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${port}/` }).end();
    };
    const issuer = `https://127.0.0.1:${provider.port}`;
    await expect(fetchSigningKeys(issuer, { ca: provider.options.ca ?? '' })).rejects.toThrow(
      `answered ${status}`,
    );
    expect(heard).toBe(0);
  });

  it('a discovery document leads over plain http to this machine alone, and to no other scheme', async () => {
    heard = 0;
    const issuer = `https://127.0.0.1:${provider.port}`;
    for (const uri of [
      'http://10.0.0.1/',
      'http://169.254.169.254/',
      'file:///etc/passwd',
      'ftp://127.0.0.1/',
      'data:,{}',
      '//x',
      '',
    ]) {
      provider.answer = (response) => {
        response.end(JSON.stringify({ issuer, jwks_uri: uri }));
      };
      await expect(fetchSigningKeys(issuer, { ca: provider.options.ca ?? '' })).rejects.toThrow();
    }
    expect(heard).toBe(0);
  });

  it('a token that says where its keys are is not followed there', async () => {
    heard = 0;
    const idp = await startIdp();
    const gpd = await startProcess({ settings: { ...idp.settings, GPD_RATE_PRIVACY: 'off' } });
    for (const member of ['jku', 'x5u']) {
      for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
        const header = { alg: 'ES256', typ: 'at+jwt', kid: 'mine', [member]: `http://${host}:${port}/` };
        const token = signJws(header, idp.claims(), idp.keys.ES256);
        const reply = await postJson(gpd.url, '/privacy/dsar', {}, { authorization: `Bearer ${token}` });
        expect(reply.status).toBe(401);
      }
    }
    expect(heard).toBe(0);
    await gpd.stop();
    await idp.stop();
  });
});
