import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A load balancer without sticky sessions: it sends each request to the next node. */
export interface Balancer {
  readonly url: string;
  /** Sets the ports of the nodes. */
  use(ports: readonly number[]): void;
  close(): Promise<void>;
}

export async function startBalancer(): Promise<Balancer> {
  let nodes: readonly number[] = [];
  let turn = 0;
  const server = createServer((incoming, outgoing) => {
    turn += 1;
    const port = nodes[turn % nodes.length];
    const { method, url: path, headers } = incoming;
    const forwarded = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
    forwarded.once('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.once('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    use(ports) {
      nodes = ports;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
