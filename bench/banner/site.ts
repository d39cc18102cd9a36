import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { cleanEnvironment, firstLine, runNode, startNode, stop } from '../lib/child.ts';
import type { Peer } from './peers.ts';

/** One shop page for every banner, and a real gpd of another origin. */

export interface Candidate {
  readonly name: string;
  readonly url: string;
  readonly selector: string;
}

export interface Site {
  readonly candidates: readonly Candidate[];
  close(): Promise<void>;
}

const GPD = fileURLToPath(new URL('../../bin/gpd', import.meta.url));
const CSS = 'body { font: 1rem/1.5 serif; margin: 2rem auto; max-width: 40em } img { display: block }';

const shell = (head: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><link rel="icon" href="data:,">
  <meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/page.css">${head}</head>
  <body>${body}<h1>Shop</h1>${'<p>Paper, ink and things that keep a record.</p>'.repeat(60)}</body></html>`;

async function startGpd(origin: string) {
  const directory = mkdtempSync(join(tmpdir(), 'gpd-bench-banner-'));
  const env = cleanEnvironment({
    GPD_DATA_DIR: join(directory, 'data'),
    GPD_RATE_CONSENT: 'off',
    GPD_LOG_LEVEL: 'warn',
  });
  const options = { cwd: directory, env };
  await runNode([GPD, 'init', '--tenant', 'shop', '--origin', origin, '--json'], options);
  const createKey = async (scope: string): Promise<string> => {
    const flags = ['--scope', scope, '--name', scope, '--json'];
    const { stdout } = await runNode([GPD, 'apikeys', 'create', 'shop', ...flags], options);
    return (JSON.parse(stdout) as { key: string }).key;
  };
  const keys = { publishable: await createKey('publishable'), secret: await createKey('secret') };
  const child = startNode([GPD, 'serve', '--port', '0', '--json'], options);
  const { port } = JSON.parse(await firstLine(child)) as { port: number };
  return {
    url: `http://localhost:${port}`,
    keys,
    async close() {
      await stop(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css' };

export async function createSite(peers: readonly Peer[]): Promise<Site> {
  const pages = new Map<string, string>();
  const files = new Map<string, string>([['/page.css', CSS]]);
  for (const peer of peers) for (const [path, text] of Object.entries(peer.files)) files.set(path, text);
  const server = createServer(({ url = '/' }, response) => {
    const page = pages.get(url);
    const text = page ?? files.get(url) ?? '';
    const type = page === undefined ? TYPES[url.split('.').at(-1) ?? ''] : 'text/html';
    response.writeHead(text === '' ? 404 : 200, {
      'content-type': `${type ?? 'text/plain'}; charset=utf-8`,
      'content-encoding': 'gzip',
      'cache-control': page === undefined ? 'max-age=300' : 'no-store',
    });
    response.end(gzipSync(text));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`;
  const gpd = await startGpd(origin);
  const candidates: Candidate[] = [];
  function add(name: string, selector: string, head: string, body = ''): void {
    const path = `/page-${pages.size}`;
    pages.set(path, shell(head, body));
    candidates.push({ name, url: origin + path, selector });
  }
  const tag = (language: string): string =>
    `<script src="${gpd.url}/v1/embed.js" data-key="${gpd.keys.publishable}" data-lang="${language}" defer></script>`;
  async function fetchMarkup(language: string): Promise<string> {
    const headers = { authorization: `Bearer ${gpd.keys.secret}` };
    const answer = await fetch(`${gpd.url}/v1/consent/banner.html?lang=${language}`, { headers });
    if (!answer.ok) throw new Error(`gpd answered ${answer.status} for the markup`);
    return answer.text();
  }
  const layer = 'gpd-consent >>> .layer';
  add('gpd, its tag', layer, tag('en'));
  add('gpd, its tag, German', layer, tag('de'));
  add('gpd, in the HTML', layer, tag('en'), await fetchMarkup('en'));
  add('gpd, in the HTML, German', layer, tag('de'), await fetchMarkup('de'));
  for (const peer of peers) add(peer.name, peer.selector, peer.head);
  return {
    candidates,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await gpd.close();
    },
  };
}
