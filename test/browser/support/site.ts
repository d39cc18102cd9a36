import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildAgent } from '../../../bin/build-agent.mjs';

/** Everything from the page's own origin, nothing inline, nothing else. */
const HEADERS = { 'content-security-policy': "default-src 'self'" };

const PAGE =
  '<!doctype html><html lang="en"><head><title>Agent</title></head><body><p>Page</p></body></html>';

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface File {
  readonly type: string;
  readonly body: string;
}

export interface SiteOptions {
  /** Stands in for gpd below /_fp/; undefined answers 404. */
  readonly gpd?: (exchange: Exchange) => Answer | undefined;
  /** Further files by path. */
  readonly files?: Readonly<Record<string, File>>;
}

export interface Site {
  readonly origin: string;
  /** Every request but the favicon's, oldest first. */
  readonly exchanges: Exchange[];
  readonly close: () => Promise<void>;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function sendFile(response: ServerResponse, { type, body }: File): void {
  response.writeHead(200, { ...HEADERS, 'content-type': `${type}; charset=utf-8` });
  response.end(body);
}

function sendAnswer(response: ServerResponse, answer: Answer | undefined): void {
  response.writeHead(answer?.status ?? 404, { 'content-type': 'application/json', ...answer?.headers });
  response.end(JSON.stringify(answer?.body ?? { error: 'not-found' }));
}

type Respond = (response: ServerResponse, exchange: Exchange) => Promise<void>;

function responder(agentDir: string, { gpd, files }: SiteOptions): Respond {
  return async (response, exchange) => {
    // A proxy that serves gpd below a path of the site strips that path.
    const path = exchange.path.replace(/^\/gpd(?=\/)/, '');
    const agentFile = /^\/v1\/(agent[a-z.-]*\.js)$/.exec(path)?.[1];
    const file = files?.[path];
    if (path.startsWith('/_fp/')) sendAnswer(response, gpd?.(exchange));
    else if (agentFile !== undefined)
      sendFile(response, {
        type: 'text/javascript',
        body: await readFile(join(agentDir, agentFile), 'utf8'),
      });
    else if (file) sendFile(response, file);
    else sendFile(response, { type: 'text/html', body: PAGE });
  };
}

/** A page at `/` under a strict policy, the built agent below /v1/ as gpd serves it, a scripted gpd below /_fp/. */
export async function startSite(options: SiteOptions = {}): Promise<Site> {
  const dir = await mkdtemp(join(tmpdir(), 'gpd-agent-'));
  await buildAgent({ outDir: dir });
  const exchanges: Exchange[] = [];
  const respond = responder(dir, options);
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: path = '/', headers } = request;
    const exchange = { method, path, headers, body: await readBody(request) };
    if (path !== '/favicon.ico') exchanges.push(exchange);
    await respond(response, exchange);
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: Error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
    await rm(dir, { recursive: true, force: true });
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, exchanges, close };
}
