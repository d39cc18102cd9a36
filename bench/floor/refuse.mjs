import { createServer } from 'node:http';

/** The floor of a refusal: a handler on node:http that reads each body and answers 503, with the headers that gpd sends. */

const body = JSON.stringify({ error: 'unavailable', message: 'too many requests are being served' });
const headers = { 'content-type': 'application/json', 'retry-after': '1', 'content-length': body.length };

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    response.writeHead(503, headers);
    response.end(body);
  });
});
// An open loop can leave a connection idle for longer than Node's default of 5 s.
server.keepAliveTimeout = 65_000;
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  process.stdout.write(`${JSON.stringify({ port })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
