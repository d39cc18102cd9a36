import { createServer } from 'node:http';

/** The floor of a check at the door: a bare handler on node:http that lets everything through. */

const server = createServer((_request, response) => {
  response.writeHead(204, { 'gpd-agent-status': 'none' });
  response.end();
});
// An open loop can leave a connection idle for longer than Node's default of 5 s.
server.keepAliveTimeout = 65_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
