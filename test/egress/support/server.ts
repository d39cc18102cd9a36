import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { WELL_KNOWN_PATH } from '../../../src/agents/directory.ts';
import type { FetchOptions } from '../../../src/egress/send.ts';
import { selfSigned } from '../../support/self-signed.ts';

/** A real https server on this machine that answers as each test wants it to. */

export const MEDIA_TYPE = 'application/http-message-signatures-directory+json';

export type Answer = (response: ServerResponse, request: IncomingMessage) => void;

export interface DirectoryServer {
  readonly port: number;
  /** The address is an IP address; the certificate names `localhost` and 127.0.0.1. */
  readonly url: string;
  /** The guard lets this machine in and trusts its CA. */
  readonly options: FetchOptions;
  /** Paths that were asked for. */
  readonly asked: string[];
  answer: Answer;
  close(): Promise<void>;
}

/** The answer of a well-behaved directory. */
export function jwks(keys: readonly unknown[], mediaType = MEDIA_TYPE): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': mediaType });
    response.end(JSON.stringify({ keys }));
  };
}

export async function startDirectory(timeoutMs = 500): Promise<DirectoryServer> {
  const files = selfSigned('local');
  const sockets = new Set<Socket>();
  const requestedPaths: string[] = [];
  const tls = { cert: files['server.crt'], key: files['server.key'] };
  const server = createServer({ ...tls, keepAlive: false }, (request, response) => {
    requestedPaths.push(request.url ?? '');
    running.answer(response, request);
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const running: DirectoryServer = {
    port,
    url: `https://127.0.0.1:${port}${WELL_KNOWN_PATH}`,
    options: {
      mediaType: MEDIA_TYPE,
      maxBytes: 65_536,
      timeoutMs,
      allow: (address) => address.range() === 'loopback',
      ca: files['ca.crt'] ?? '',
    },
    asked: requestedPaths,
    answer: jwks([]),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return running;
}
