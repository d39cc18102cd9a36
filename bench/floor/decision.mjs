// The server of `bench sdk`: one granted decision for every check, and no work behind it, so that what is measured is
// the client. usage: node decision.mjs
import { createServer } from 'node:http';

const body = JSON.stringify({
  allowed: true,
  reason: 'granted',
  proof: { seq: 41, hash: 'ab'.repeat(32) },
  policyVersion: 1,
  expiresAt: '2027-11-20T10:00:00.000Z',
});
const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, headers);
    response.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : null }));
});
