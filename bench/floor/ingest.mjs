import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { makeOpener } from './open.mjs';
import { makeWriter } from './rows.mjs';

/**
 * The least that an ingest server on this runtime and this driver can do for a bundle: read, parse, open, parse, write
 * the rows durably, answer as many bytes. No validation, no consent, no classification, no lookup, no cookie.
 */

const [file = '', kid = '', keyFile = '', answerBytes = '0', verdictBytes = '0'] = process.argv.slice(2);
const open = makeOpener(kid, readFileSync(keyFile));
const write = await makeWriter(file);
const verdict = 'v'.repeat(Number(verdictBytes));
const IDS_BYTES = 90;
const filler = 'a'.repeat(Math.max(0, Number(answerBytes) - IDS_BYTES));
let count = 0;

const server = createServer((request, response) => {
  /** @type {Buffer[]} */
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const plaintext = JSON.parse(open(JSON.parse(Buffer.concat(chunks).toString())));
    const { nonce, signals } = plaintext;
    const device = signals.graphics.canvasHash + signals.fonts;
    const durable = createHash('sha256').update(device).digest('base64url');
    const visitorId = durable.slice(0, 22);
    count += 1;
    const requestId = `req_${String(count).padStart(26, '0')}`;
    write({ kid, nonce, durable, visitorId, requestId, now: Date.now(), verdict }, () => {
      const body = JSON.stringify({ visitorId, requestId, filler });
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    });
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`);
});
process.on('SIGTERM', () => process.exit(0));
