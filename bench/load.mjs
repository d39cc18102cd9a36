import { closeSync, openSync, readSync } from 'node:fs';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { createArrivals, now } from './arrivals.mjs';

/**
 * Load generator in a separate process: sends prepared requests over keep-alive sockets and prints one line of JSON. It
 * parses only the heads of answers, so that it is never slower than the servers.
 */

// Closed loop: a connection sends its next request after each answer. Open loop (`--rate`): each request is sent when it is
// due, on a free or a new connection. Above the maximum of connections it waits; its latency counts from when it was due.

const { values } = parseArgs({
  options: {
    file: { type: 'string', default: '' },
    port: { type: 'string', default: '' },
    connections: { type: 'string', default: '50' },
    skip: { type: 'string', default: '0' },
    count: { type: 'string', default: '1' },
    // Requests per second; 0 is the closed loop.
    rate: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    // Only answers with this status count for the latencies; by default all do.
    status: { type: 'string', default: '' },
  },
});
const total = Number(values.count);
const rate = Number(values.rate);
const connections = Math.min(Number(values.connections), total);

const CHUNK = 4 * 1024 * 1024;
const file = openSync(values.file, 'r');
let buffered = Buffer.alloc(0);

/** @param {number} bytes */
function take(bytes) {
  while (buffered.length < bytes) {
    const chunk = Buffer.allocUnsafe(CHUNK);
    const length = readSync(file, chunk, 0, CHUNK, null);
    if (length === 0) throw new Error('the file holds too few requests');
    buffered = Buffer.concat([buffered, chunk.subarray(0, length)]);
  }
  const part = buffered.subarray(0, bytes);
  buffered = buffered.subarray(bytes);
  return part;
}

const nextRequest = () => take(take(4).readUInt32BE(0));
for (let i = 0; i < Number(values.skip); i += 1) nextRequest();

const latencies = new Float64Array(total);
/** @type {Record<string, number>} */
const statuses = {};
let measured = 0;
let answered = 0;
let bodyBytes = 0;

/** @param {Buffer} answer @returns {number | null} bytes of the body once it is whole */
function completeBody(answer) {
  const end = answer.indexOf('\r\n\r\n');
  if (end === -1) return null;
  // RFC 9110 section 8.6: a 204 has no Content-Length.
  if (answer.toString('latin1', 9, 12) === '204') return 0;
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer.toString('latin1', 0, end))?.[1]);
  if (Number.isNaN(length)) throw new Error('an answer without Content-Length');
  return answer.length >= end + 4 + length ? length : null;
}

/**
 * @typedef {object} Connection
 * @property {(since: number) => void} send the next request, whose latency counts from `since`
 * @property {() => void} end
 * @property {() => boolean} isOpen false after the server has closed an idle connection
 */

/** All sockets share one receive buffer: allocating one per read would be most of the work of this process. */
const received = Buffer.allocUnsafe(65_536);

/**
 * @param {(connection: Connection) => void} onFree
 * @param {(error: Error) => void} onError
 * @returns {Promise<Connection>} connected
 */
function open(onFree, onError) {
  return new Promise((resolve) => {
    /** @param {number} bytes @param {Uint8Array} into */
    const onBytes = (bytes, into) => {
      onData(Buffer.from(into.buffer, into.byteOffset, bytes));
      return true;
    };
    const socket = connect({
      port: Number(values.port),
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: received, callback: onBytes },
    });
    let answer = Buffer.alloc(0);
    let startedAt = 0;
    let busy = true;
    const connection = {
      /** @param {number} since */
      send(since) {
        busy = true;
        startedAt = since;
        socket.write(nextRequest());
      },
      end: () => socket.destroy(),
      isOpen: () => !socket.destroyed,
    };
    socket.on('connect', () => resolve(connection));
    const onData = (/** @type {Buffer} */ chunk) => {
      const whole = answer.length === 0 ? chunk : Buffer.concat([answer, chunk]);
      const length = completeBody(whole);
      if (length === null) {
        answer = Buffer.from(whole);
        return;
      }
      const status = whole.toString('latin1', 9, 12);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (values.status === '' || values.status === status) {
        latencies[measured] = now() - startedAt;
        measured += 1;
      }
      answered += 1;
      bodyBytes += length;
      answer = Buffer.alloc(0);
      busy = false;
      onFree(connection);
    };
    socket.on('error', onError);
    socket.on('close', () => {
      if (busy) onError(new Error('the server closed a connection'));
    });
  });
}

/** @returns {Promise<number>} when it began */
async function closedLoop() {
  let sentCount = 0;
  const startedAt = now();
  await new Promise((resolve, reject) => {
    const next = (/** @type {Connection} */ connection) => {
      if (sentCount < total) {
        sentCount += 1;
        connection.send(now());
      } else {
        connection.end();
        if (answered === total) resolve(null);
      }
    };
    const begin = async () => next(await open(next, reject));
    for (let i = 0; i < connections; i += 1) begin().catch(reject);
  });
  return startedAt;
}

/** The largest number of requests that were due and found no free connection. */
let waitingMost = 0;

/** @returns {Promise<number>} when it began */
function openLoop() {
  return new Promise((resolve, reject) => {
    /** @type {Connection[]} */
    const free = [];
    /** Due times of waiting requests, oldest first; those before `head` were sent. @type {number[]} */
    const waiting = [];
    let head = 0;
    let startedAt = 0;
    let opened = 0;
    const onFree = (/** @type {Connection} */ connection) => {
      const since = waiting[head];
      if (since === undefined) {
        free.push(connection);
      } else {
        head += 1;
        connection.send(since);
      }
      if (answered < total) return;
      for (const each of free) each.end();
      resolve(startedAt);
    };
    /** Takes a free connection that the server has not closed, if there is one. */
    const takeFree = () => {
      for (let connection = free.pop(); connection; connection = free.pop()) {
        if (connection.isOpen()) return connection;
        opened -= 1;
      }
      return null;
    };
    const arrive = (/** @type {number} */ since) => {
      const connection = takeFree();
      if (connection) {
        connection.send(since);
      } else if (opened < connections) {
        opened += 1;
        open(onFree, reject).then((connection) => connection.send(since), reject);
      } else {
        waiting.push(since);
        waitingMost = Math.max(waitingMost, waiting.length - head);
      }
    };
    const seed = Number(values.seed);
    const next = createArrivals(rate, seed);
    const workerData = { rate, seed, total };
    const pacer = new Worker(new URL('arrivals.mjs', import.meta.url), { workerData });
    pacer.on('error', reject);
    pacer.on('message', ({ startedAt: began, due = 0 }) => {
      startedAt = began ?? startedAt;
      for (let i = 0; i < due; i += 1) arrive(startedAt + next());
    });
  });
}

const startedAt = await (rate > 0 ? openLoop() : closedLoop());
const seconds = (now() - startedAt) / 1000;
closeSync(file);
const sorted = latencies.subarray(0, measured).sort();

/** @param {number} part */
const quantile = (part) => sorted[Math.min(measured - 1, Math.floor(part * measured))] ?? null;
const result = {
  statuses,
  seconds,
  p50: quantile(0.5),
  p99: quantile(0.99),
  p999: quantile(0.999),
  waitingMost,
  bodyBytes: bodyBytes / total,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
