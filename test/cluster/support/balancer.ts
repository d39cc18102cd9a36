import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A load balancer as small as one can be: each request goes to the next node. What a node refused to connect goes to the
 * one after it, as nothing was sent; a connection that breaks later is a 502, since nobody knows what was done.
 */
export interface Balancer {
  readonly url: string;
  add(port: number): void;
  remove(port: number): void;
  /** Requests that each port answered. */
  answered(): ReadonlyMap<number, number>;
  stop(): Promise<void>;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const REFUSED = 'ECONNREFUSED';

export async function startBalancer(): Promise<Balancer> {
  // Kept connections take turns: none is silent for long while there is load.
  const agent = new Agent({ keepAlive: true, maxSockets: 128, scheduling: 'fifo' });
  const ports: number[] = [];
  const counts = new Map<number, number>();
  let turn = 0;

  /** @param candidates the nodes in the order in which this request may reach them */
  function forward(
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
    [port, ...otherPorts]: readonly number[],
  ): void {
    if (port === undefined) {
      response.writeHead(502).end();
      return;
    }
    const forwardedFor = request.headers['x-forwarded-for'];
    const from = [...(forwardedFor === undefined ? [] : [forwardedFor]), request.socket.remoteAddress].join(
      ', ',
    );
    const { method, url, headers } = request;
    const forwarded = httpRequest({
      agent,
      host: '127.0.0.1',
      port,
      path: url,
      method,
      headers: { ...headers, 'x-forwarded-for': from },
    });
    forwarded.once('response', (answer) => {
      counts.set(port, (counts.get(port) ?? 0) + 1);
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.once('error', () => response.destroy());
      answer.pipe(response);
    });
    forwarded.once('error', (error: NodeJS.ErrnoException) => {
      if (response.headersSent) response.destroy();
      else if (error.code === REFUSED) forward(request, body, response, otherPorts);
      else response.writeHead(502).end();
    });
    forwarded.end(body);
  }

  const server = createServer((request, response) => {
    readBody(request).then(
      (body) => {
        const first = turn++ % Math.max(1, ports.length);
        forward(request, body, response, [...ports.slice(first), ...ports.slice(0, first)]);
      },
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: (port) => void ports.push(port),
    remove: (port) => void ports.splice(ports.indexOf(port), 1),
    answered: () => counts,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      agent.destroy();
    },
  };
}
