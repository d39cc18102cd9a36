import { createServer } from 'node:http';

/** The least that node:http does for a JSON question: read, parse, answer as many bytes. No key, no database. */

const [answerBytes = '0'] = process.argv.slice(2);
const EMPTY_BYTES = JSON.stringify({ id: '', allowed: true, filler: '' }).length;

const server = createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const { principalId: id } = JSON.parse(Buffer.concat(chunks).toString());
    const filler = 'a'.repeat(Math.max(0, Number(answerBytes) - EMPTY_BYTES - id.length));
    const body = JSON.stringify({ id, allowed: true, filler });
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
