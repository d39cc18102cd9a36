import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** The server of the test page: serves the page, forwards /v1 and /_fp to gpd as a reverse proxy, and collects reports. */

const PAGE =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Matrix</title></head>' +
  '<body><p>Matrix</p><script type="module" src="/matrix/page.js"></script></body></html>';

const READY_MS = 30_000;

export interface Report {
  readonly gpd: unknown;
  /** The result of `update()` after a press. */
  readonly later?: unknown;
}

/** A POST /_fp/i/v1 as the browser sent it. */
export interface Exchange {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Site {
  readonly origin: string;
  /** Sets the address of gpd; until then /v1 and /_fp answer 503. */
  proxyTo(port: number): void;
  /** Waits for the report of a run's page. @throws {Error} after `ms` */
  reportOf(run: string, ms: number): Promise<Report>;
  /** Resolves when the button of a run can be pressed. @throws {Error} on a timeout */
  readyOf(run: string): Promise<void>;
  /** @returns the last forwarded ingest */
  lastExchange(): Exchange | null;
  firstExchange(): Exchange | null;
  forgetExchange(): void;
  close(): Promise<void>;
}

async function bundlePage(): Promise<string> {
  const result = await build({
    entryPoints: [fileURLToPath(new URL('../page/page.ts', import.meta.url))],
    bundle: true,
    write: false,
    format: 'esm',
    target: ['chrome100', 'firefox100', 'safari15.4'],
    logLevel: 'error',
  });
  return result.outputFiles[0]?.text ?? '';
}

function reply(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' });
  response.end(body);
}

/** Forwards headers unchanged, because gpd judges them. */
function proxy(port: number, incoming: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { url: path, method } = incoming;
  const headers = { ...incoming.headers, 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'https' };
  const outgoing = request({ host: '127.0.0.1', port, path, method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => {
    if (!response.headersSent) reply(response, 502, 'text/plain', 'gpd did not answer');
  });
  outgoing.end(body);
}

interface Mailbox {
  visited(run: string): void;
  put(run: string, report: Report): void;
  wait(run: string, ms: number): Promise<Report>;
}

function createMailbox(): Mailbox {
  const visited = new Set<string>();
  const waiting = new Map<string, (report: Report) => void>();
  const came = new Map<string, Report>();
  const noReportError = (run: string): Error =>
    new Error(visited.has(run) ? 'the page was opened but reported nothing' : 'the page was never opened');
  return {
    visited: (run) => visited.add(run),
    put(run, report) {
      came.set(run, report);
      waiting.get(run)?.(report);
    },
    wait: (run, ms) =>
      new Promise((resolve, reject) => {
        const earlyReport = came.get(run);
        if (earlyReport) {
          resolve(earlyReport);
          return;
        }
        const timer = setTimeout(() => reject(noReportError(run)), ms);
        waiting.set(run, (report) => {
          clearTimeout(timer);
          resolve(report);
        });
      }),
  };
}

export async function startSite(): Promise<Site> {
  const script = await bundlePage();
  const mailbox = createMailbox();
  const ready = createMailbox();
  let exchanges: Exchange[] = [];
  let gpd: number | null = null;

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://localhost');
    const body = await buffer(incoming);
    const run = searchParams.get('run') ?? '';
    if (pathname === '/') {
      mailbox.visited(run);
      reply(response, 200, 'text/html', PAGE);
    } else if (pathname === '/matrix/page.js') {
      reply(response, 200, 'text/javascript', script);
    } else if (pathname === '/matrix/result') {
      mailbox.put(run, JSON.parse(body.toString('utf8')) as Report);
      reply(response, 200, 'application/json', '{}');
    } else if (pathname === '/matrix/ready') {
      ready.put(run, { gpd: null });
      reply(response, 200, 'application/json', '{}');
    } else if (!/^\/(?:v1|_fp)\//.test(pathname)) {
      reply(response, 404, 'text/plain', 'not found');
    } else if (gpd === null) {
      reply(response, 503, 'text/plain', 'gpd is not up yet');
    } else {
      if (pathname === '/_fp/i/v1')
        exchanges.push({ headers: incoming.headers, body: body.toString('utf8') });
      proxy(gpd, incoming, body, response);
    }
  }

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: Error) => response.destroy(error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    proxyTo: (port) => {
      gpd = port;
    },
    reportOf: (run, ms) => mailbox.wait(run, ms),
    readyOf: async (run) => {
      await ready.wait(run, READY_MS);
    },
    lastExchange: () => exchanges.at(-1) ?? null,
    firstExchange: () => exchanges[0] ?? null,
    forgetExchange: () => {
      exchanges = [];
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
