import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An HTTP server of a test, on a free port of this machine. */
export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly stop: () => Promise<void>;
}

export async function serve(answer: RequestListener, host = '127.0.0.1'): Promise<TestServer> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${port}`,
    port,
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server that answers each request when all of its body is there. */
export const receive = (
  answer: (received: Received, response: ServerResponse) => void,
): Promise<TestServer> =>
  serve((request, response) => {
    const { url: path = '', headers } = request;
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => answer({ path, headers, body }, response));
  });
