import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createRelay, type Server as Relay } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { AGENT_ORIGIN, createAgent, quoted, signedHeaders } from '../agents/support/agent.ts';
import { type Spawned, spawnTool, tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { ask, type Reply } from '../support/http.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { missingProxy } from './proxy.ts';

/** The configurations of docs/agents.md on real proxies, in front of a shop. */

const PAGE = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8');
const example = (name: string): string =>
  readFileSync(new URL(`../../docs/operate/proxies/${name}`, import.meta.url), 'utf8');
const blocksOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, text = '']) => text);

interface Ports {
  readonly proxy: number;
  readonly gpd: number;
  readonly shop: number;
}

interface Setup {
  readonly name: 'nginx' | 'caddy' | 'haproxy';
  write(directory: string, ports: Ports): void;
  command(directory: string): readonly string[];
}

const nginx: Setup = {
  name: 'nginx',
  write(directory, { proxy, gpd, shop }) {
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(directory, name)};`,
    );
    const [upstream, site, record] = blocksOf('nginx');
    const text = `daemon off; ${process.getuid?.() === 0 ? 'user root;' : ''} pid ${join(directory, 'pid')};
events {}
http {
  ${places.join(' ')} ${record?.replace('day.ndjson', join(directory, 'day.ndjson'))}
  ${upstream?.replace('127.0.0.1:8080', `127.0.0.1:${gpd}`)}
  upstream shop { server 127.0.0.1:${shop}; }
  server {
    listen 127.0.0.1:${proxy};
    ${site}
  }
}`;
    writeFileSync(join(directory, 'nginx.conf'), text);
  },
  command: (directory) => ['-e', 'stderr', '-c', join(directory, 'nginx.conf')],
};

const caddy: Setup = {
  name: 'caddy',
  write(directory, { proxy, gpd, shop }) {
    const site = blocksOf('caddyfile').join('').replace('gpd:8080', `127.0.0.1:${gpd}`);
    const text = `{\n\tadmin off\n\tauto_https off\n}\n\nhttp://:${proxy} {\n\tbind 127.0.0.1\n${site}\n\treverse_proxy 127.0.0.1:${shop}\n}\n`;
    writeFileSync(join(directory, 'Caddyfile'), text);
  },
  command: (directory) => ['run', '--adapter', 'caddyfile', '--config', join(directory, 'Caddyfile')],
};

const haproxy: Setup = {
  name: 'haproxy',
  write(directory, { proxy, gpd, shop }) {
    const script = join(directory, 'agents.lua');
    writeFileSync(script, example('agents.lua').replace('127.0.0.1:8080', `127.0.0.1:${gpd}`));
    const text = example('agents-haproxy.cfg')
      .replace('/etc/haproxy/agents.lua', script)
      .replace('bind :80', `bind 127.0.0.1:${proxy}`)
      .replace('127.0.0.1:3000', `127.0.0.1:${shop}`);
    writeFileSync(join(directory, 'haproxy.cfg'), text);
  },
  command: (directory) => ['-db', '-f', join(directory, 'haproxy.cfg')],
};

const policy = [
  { agent: AGENT_ORIGIN, path: '/api', action: 'allow' },
  { agent: '*', path: '/api', action: 'require' },
  { agent: '*', path: '/admin', action: 'deny' },
];

/** It answers with what it was told about the agent. */
const startShop = (): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer(({ headers }, response) => response.end(String(headers['gpd-agent'] ?? '')));
    server.listen(0, '127.0.0.1', () => resolve(server));
  });

/** Passes connections on to gpd and counts them. */
async function startRelay(port: number): Promise<{ readonly relay: Relay; readonly count: () => number }> {
  let count = 0;
  const relay = createRelay((socket) => {
    count += 1;
    const onward = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const)
      one.pipe(other).on('error', () => one.destroy());
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  return { relay, count: () => count };
}

/** The answer to a head that no client library would send. */
const sendRaw = (base: string, head: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(base).port), '127.0.0.1', () =>
      socket.write(`${head}\r\nConnection: close\r\n\r\n`),
    );
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });

for (const setup of [nginx, caddy, haproxy])
  describeWithTool(
    `agents behind ${setup.name}`,
    missingProxy({ name: setup.name } as Parameters<typeof missingProxy>[0]),
    () => {
      const agent = createAgent();
      const host = new URL(ORIGIN).host;
      let gpd: Gpd;
      let shop: Server;
      let way: Awaited<ReturnType<typeof startRelay>>;
      let proxy: Spawned;
      let base = '';
      let directory = '';
      beforeAll(async () => {
        gpd = await startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
        directory = tempDir(setup.name);
        writeFileSync(join(directory, 'jwks.json'), JSON.stringify({ keys: [agent.jwk] }));
        await gpd.json(['agents', 'add', AGENT_ORIGIN, '--jwks', join(directory, 'jwks.json')]);
        await gpd.json(['tenants', 'set', KID, `agents.policy=${JSON.stringify(policy)}`]);
        shop = await startShop();
        way = await startRelay(gpd.port);
        const [gpdPort, shopPort] = [way.relay, shop].map((server) => (server.address() as AddressInfo).port);
        const ports = { proxy: await freePort(), gpd: gpdPort ?? 0, shop: shopPort ?? 0 };
        mkdirSync(join(directory, 'home'));
        setup.write(directory, ports);
        const home = join(directory, 'home');
        const env = { HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home };
        proxy = spawnTool(setup.name, setup.command(directory), { cwd: directory, env });
        base = `http://127.0.0.1:${ports.proxy}`;
        await vi.waitFor(async () => expect((await through('/admin')).status).toBe(403), SEEN_WITHIN);
        await vi.waitFor(
          async () => expect((await through('/api', signed('/api'))).status).toBe(200),
          SEEN_WITHIN,
        );
        // Requests until here were answered before gpd had read the policy.
        writeFileSync(join(directory, 'day.ndjson'), '');
      });
      afterAll(async () => {
        proxy?.child.kill('SIGTERM');
        await proxy?.exited;
        shop?.close();
        way?.relay.close();
        await gpd?.stop();
      });

      const through = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
        ask(base, path, { headers: { host, ...headers } });

      function signed(target: string, nonce?: string): Record<string, string> {
        const now = Math.floor(Date.now() / 1000);
        const params = { created: String(now), expires: String(now + 60) };
        const components = [
          '"@authority"',
          '"@method"',
          '"@path"',
          '"@query"',
          '"signature-agent";key="sig1"',
        ];
        const use = nonce === undefined ? {} : { nonce: quoted(nonce) };
        return signedHeaders(agent, {
          method: 'GET',
          host,
          target,
          components,
          params: { ...params, ...use },
        });
      }

      it('tells the shop who signed, and nobody else says so', async () => {
        expect((await through('/page?a=%20b', signed('/page?a=%20b'))).text).toBe(AGENT_ORIGIN);
        expect((await through('/page', signed('/other'))).text).toBe('');
        expect((await through('/page', { 'gpd-agent': AGENT_ORIGIN })).text).toBe('');
      });

      it('refuses by the policy with a case, whatever headers the client adds', async () => {
        for (const headers of [
          {},
          { 'x-forwarded-uri': '/' },
          { 'x-original-uri': '/' },
          { 'x-forwarded-host': 'a.example' },
        ]) {
          const refused = await through('/admin/x', headers as Record<string, string>);
          expect({ headers, status: refused.status }).toEqual({ headers, status: 403 });
          expect(refused.headers['gpd-agent-case']).toMatch(/^req_/);
        }
        expect((await through('/api')).status).toBe(401);
        expect((await through('/api', signed('/api'))).status).toBe(200);
      });

      it('asks about the host and path that the site serves, however the client spells them', async () => {
        const lines = [
          [`http://${host}/admin/x`, 'nobody.example'],
          ['/admin/x', `${host}.`],
          ['/admin/x', `${host}:9`],
          ['/%61dmin/%ff', host],
          ['/x/..;/../admin/', host],
        ] as const;
        for (const [target, name] of lines)
          expect(await sendRaw(base, `GET ${target} HTTP/1.1\r\nHost: ${name}`), target + name).toMatch(
            // HAProxy itself refuses a target whose host is not the one of the header.
            setup.name === 'haproxy' ? /^HTTP\/1\.1 40[03] / : /^HTTP\/1\.1 403 /,
          );
      });

      it('asks over connections that it keeps', async () => {
        const before = way.count();
        for (let i = 0; i < 20; i += 1) expect((await through('/page')).status).toBe(200);
        expect(way.count() - before).toBeLessThan(5);
      });

      it('lets a nonce through once', async () => {
        const headers = signed('/api', `n-${Date.now()}`);
        expect((await through('/api', headers)).status).toBe(200);
        expect((await through('/api', headers)).status).toBe(401);
      });

      if (setup.name === 'nginx')
        it('records a day that can be replayed', async () => {
          const replay = async (rows: object[]): Promise<unknown> => {
            writeFileSync(join(directory, 'policy.json'), JSON.stringify(rows));
            const files = [join(directory, 'day.ndjson'), '--policy', join(directory, 'policy.json')];
            return gpd.json(['agents', 'replay', ...files]);
          };
          expect(await replay(policy)).toMatchObject({ changed: 0 });
          const change = { agent: AGENT_ORIGIN, path: '/api', before: 204, after: 403 };
          expect(
            await replay([{ agent: AGENT_ORIGIN, path: '/api', action: 'deny' }, ...policy]),
          ).toMatchObject({
            changes: expect.arrayContaining([expect.objectContaining(change) as unknown]) as unknown,
          });
        });
    },
  );
