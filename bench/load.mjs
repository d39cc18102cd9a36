import { closeSync, openSync, readSync } from 'node:fs';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';

/**
 * Load generator, in a process of its own: writes requests that were made before over keep-alive sockets, one at a time
 * a connection, and prints one line of JSON. It parses nothing but the head of an answer, so that it is never what the
 * servers wait for.
 */

const { values } = parseArgs({
  options: {
    file: { type: 'string', default: '' },
    port: { type: 'string', default: '' },
    connections: { type: 'string', default: '50' },
    skip: { type: 'string', default: '0' },
    count: { type: 'string', default: '1' },
  },
});
const total = Number(values.count);
const connections = Math.min(Number(values.connections), total);

const CHUNK = 4 * 1024 * 1024;
const file = openSync(values.file, 'r');
let buffered = Buffer.alloc(0);

/** @param {number} bytes */
function take(bytes) {
  while (buffered.length < bytes) {
    const more = Buffer.allocUnsafe(CHUNK);
    const read = readSync(file, more, 0, CHUNK, null);
    if (read === 0) throw new Error('the file holds too few requests');
    buffered = Buffer.concat([buffered, more.subarray(0, read)]);
  }
  const taken = buffered.subarray(0, bytes);
  buffered = buffered.subarray(bytes);
  return taken;
}

const nextRequest = () => take(take(4).readUInt32BE(0));
for (let i = 0; i < Number(values.skip); i += 1) nextRequest();

const latencies = new Float64Array(total);
/** @type {Record<string, number>} */
const statuses = {};
let sent = 0;
let answered = 0;
let bodyBytes = 0;

/** @param {Buffer} answer @returns {number | null} bytes of the body once it is whole */
function completeBody(answer) {
  const end = answer.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer.toString('latin1', 0, end))?.[1]);
  if (Number.isNaN(length)) throw new Error('an answer without Content-Length');
  return answer.length >= end + 4 + length ? length : null;
}

/** @returns {Promise<void>} */
function drive() {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(values.port), host: '127.0.0.1', noDelay: true });
    let answer = Buffer.alloc(0);
    let startedAt = 0;
    const send = () => {
      if (sent === total) {
        socket.destroy();
        resolve();
        return;
      }
      sent += 1;
      startedAt = performance.now();
      socket.write(nextRequest());
    };
    socket.on('connect', send);
    socket.on('data', (chunk) => {
      answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk]);
      const length = completeBody(answer);
      if (length === null) return;
      const status = answer.toString('latin1', 9, 12);
      statuses[status] = (statuses[status] ?? 0) + 1;
      latencies[answered] = performance.now() - startedAt;
      answered += 1;
      bodyBytes += length;
      answer = Buffer.alloc(0);
      send();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed a connection')));
  });
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: connections }, drive));
const seconds = (performance.now() - startedAt) / 1000;
closeSync(file);
latencies.sort();

/** @param {number} part */
const quantile = (part) => latencies[Math.min(total - 1, Math.floor(part * total))];
const result = { statuses, seconds, p50: quantile(0.5), p99: quantile(0.99), bodyBytes: bodyBytes / total };
process.stdout.write(`${JSON.stringify(result)}\n`);
