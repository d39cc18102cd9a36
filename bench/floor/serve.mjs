/**
 * Any port, told as a line of JSON; SIGTERM ends it.
 * @param {import('node:http').Server} server
 */
export function serve(server) {
  // As gpd: below its capacity an open loop leaves connections idle for longer than Node's 5 s.
  server.keepAliveTimeout = 65_000;
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    process.stdout.write(`${JSON.stringify({ port })}\n`);
  });
  process.on('SIGTERM', () => process.exit(0));
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {(body: any) => void} then
 */
export function readJson(request, then) {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => then(JSON.parse(Buffer.concat(chunks).toString())));
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {number} status
 * @param {object} value
 */
export function answerJson(response, status, value) {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}
