import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { readAnswers } from '../attack/support/raw.ts';
import { type Environment, gpdJson, type Spawned, spawnTool, tempDir } from '../support/command.ts';
import { type Ask, ask, type Reply } from '../support/http.ts';
import { freePort } from '../support/ports.ts';

/** The examples of docs/operate/proxies as they are, but for addresses and paths, in front of a gpd. */

export const HOST = 'id.shop.example';
const EXAMPLES = fileURLToPath(new URL('../../docs/operate/proxies/', import.meta.url));

export interface Proxy {
  readonly name: string;
  command(directory: string): readonly [file: string, args: readonly string[]];
  /** The proxy's own check of the file. */
  check(directory: string): readonly [file: string, args: readonly string[]];
  configure(directory: string, ports: Ports, files: Certificate): void;
}

export interface Ports {
  readonly https: number;
  readonly http: number;
  readonly gpd: number;
}

interface Certificate {
  readonly crt: string;
  readonly key: string;
}

/** Each change has to find what it changes: an example that reads otherwise is not the one that was tested. */
function changed(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the example has no ${from}`);
    return before.replaceAll(from, to);
  }, text);
}

const example = (name: string): string => readFileSync(join(EXAMPLES, name), 'utf8');

const nginx: Proxy = {
  name: 'nginx',
  command: (directory) => ['nginx', ['-e', 'stderr', '-c', join(directory, 'main.conf')]],
  check: (directory) => ['nginx', ['-e', 'stderr', '-t', '-c', join(directory, 'main.conf')]],
  configure(directory, ports, { crt, key }) {
    const text = changed(example('nginx.conf'), [
      ['127.0.0.1:8080', `127.0.0.1:${ports.gpd}`],
      ['listen 443', `listen 127.0.0.1:${ports.https}`],
      ['listen 80', `listen 127.0.0.1:${ports.http}`],
      ['listen [::]:443 ssl http2;', ''],
      ['listen [::]:80;', ''],
      ['/etc/ssl/gpd/server.crt', crt],
      ['/etc/ssl/gpd/server.key', key],
    ]);
    writeFileSync(join(directory, 'gpd.conf'), text);
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `  ${name}_temp_path ${join(directory, name)};`,
    );
    const user = process.getuid?.() === 0 ? ['user root;'] : [];
    const main = ['daemon off;', ...user, 'worker_processes 1;', `pid ${join(directory, 'nginx.pid')};`];
    const http = ['events {}', 'http {', '  access_log off;', ...places, '  include gpd.conf;', '}'];
    writeFileSync(join(directory, 'main.conf'), [...main, ...http, ''].join('\n'));
  },
};

const caddy: Proxy = {
  name: 'caddy',
  command: (directory) => [
    'caddy',
    ['run', '--adapter', 'caddyfile', '--config', join(directory, 'Caddyfile')],
  ],
  check: (directory) => [
    'caddy',
    ['validate', '--adapter', 'caddyfile', '--config', join(directory, 'Caddyfile')],
  ],
  configure(directory, ports, { crt, key }) {
    const text = changed(example('Caddyfile'), [
      ['127.0.0.1:8080', `127.0.0.1:${ports.gpd}`],
      ['/etc/ssl/gpd/server.crt', crt],
      ['/etc/ssl/gpd/server.key', key],
    ]);
    const options = [
      'admin off',
      'default_bind 127.0.0.1',
      `http_port ${ports.http}`,
      `https_port ${ports.https}`,
      `storage file_system ${join(directory, 'storage')}`,
    ];
    writeFileSync(join(directory, 'Caddyfile'), `{\n\t${options.join('\n\t')}\n}\n\n${text}`);
  },
};

export const PROXIES: readonly Proxy[] = [nginx, caddy];

export function missingProxy({ name }: Proxy): string | null {
  const found = spawnSync('sh', ['-c', `command -v ${name}`]).status === 0;
  return found ? null : `not installed (apt-get install ${name})`;
}

export interface Running extends Spawned {
  readonly https: number;
  readonly http: number;
  readonly ca: string;
}

/** With a certificate of `gpd tls`; its own check of the configuration first. */
export async function startProxy(proxy: Proxy, gpdPort: number): Promise<Running> {
  const directory = tempDir(proxy.name);
  const tls = join(directory, 'tls');
  await gpdJson(['tls', 'init', '--host', HOST, '--out', tls]);
  const ports: Ports = { https: await freePort(), http: await freePort(), gpd: gpdPort };
  mkdirSync(join(directory, 'storage'));
  proxy.configure(directory, ports, { crt: join(tls, 'server.crt'), key: join(tls, 'server.key') });
  const env: Environment = { XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory, HOME: directory };
  const [file, args] = proxy.check(directory);
  execFileSync(file, args, { env: { ...process.env, ...env }, stdio: 'pipe' });
  const spawned = spawnTool(...proxy.command(directory), { cwd: directory, env });
  const ca = readFileSync(join(tls, 'ca.crt'), 'utf8');
  return { ...spawned, https: ports.https, http: ports.http, ca };
}

export interface Through extends Ask {
  /** The client's own address, on this machine: 127.0.0.1 is the proxy's. */
  readonly from?: string;
}

/** A request through the proxy, as a browser of the shop's visitors would make it. */
export function askThrough(
  { https, ca }: Running,
  path: string,
  { from = '127.0.0.9', headers = {}, ...request }: Through = {},
): Promise<Reply> {
  return ask(`https://127.0.0.1:${https}`, path, {
    ...request,
    headers: { host: HOST, ...headers },
    by: { ca, servername: HOST, localAddress: from },
  });
}

const QUIET_MS = 400;

/** Bytes to the proxy over TLS, and the whole answers that came back until it was quiet or over. */
export function exchangeThrough(
  { https, ca }: Running,
  bytes: string,
): Promise<ReturnType<typeof readAnswers>['answers']> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port: https, ca, servername: HOST, ALPNProtocols: ['http/1.1'] };
    const socket = connect(options, () => socket.write(bytes, 'latin1'));
    let text = '';
    let timer = setTimeout(() => socket.destroy(), 5000);
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      clearTimeout(timer);
      timer = setTimeout(() => socket.destroy(), QUIET_MS);
    });
    socket.on('error', () => {});
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(readAnswers(text).answers);
    });
  });
}
