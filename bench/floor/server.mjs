import { createServer } from 'node:http';
import sqlite3 from 'sqlite3';

/** Shared by the floors: a plain JSON server, and a group writer on the bare driver that is as durable as gpd. */

/**
 * Serves on a free port, which it prints as a line of JSON, until SIGTERM.
 * @param {(body: any, answer: (status: number, value: object) => void) => void} handle
 */
export function serveJson(handle) {
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () =>
      handle(JSON.parse(Buffer.concat(chunks).toString()), (status, value) => {
        const body = JSON.stringify(value);
        const length = Buffer.byteLength(body);
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': length });
        response.end(body);
      }),
    );
  });
  // An open loop can leave a connection idle for longer than Node's default of 5 s.
  server.keepAliveTimeout = 65_000;
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    process.stdout.write(`${JSON.stringify({ port })}\n`);
  });
  process.on('SIGTERM', () => process.exit(0));
}

const PRAGMAS = `PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON;
PRAGMA wal_autocheckpoint=4000;`;

/**
 * @typedef {(string | number | null)[]} Values
 */
/**
 * @template Entry
 * @typedef {[head: string, tail: string, values: (entry: Entry) => Values]} Statement
 */

/** @param {string} file @param {string} schema @returns {Promise<import('sqlite3').Database>} */
function open(file, schema) {
  return new Promise((resolve, reject) => {
    const database = new sqlite3.Database(file, (error) => {
      if (error) reject(error);
      else database.exec(PRAGMAS + schema, (failed) => (failed ? reject(failed) : resolve(database)));
    });
  });
}

/**
 * Runs one transaction at a time, with one statement of many rows per table. The next batch gathers meanwhile.
 * @template Entry
 * @param {string} file
 * @param {string} schema
 * @param {readonly Statement<Entry>[]} statements
 * @returns {Promise<(entry: Entry, done: () => void) => void>}
 */
export async function createGroupWriter(file, schema, statements) {
  const database = await open(file, schema);
  /** @param {string} sql @param {Values} [values] @returns {Promise<void>} */
  const run = (sql, values = []) =>
    new Promise((resolve, reject) => {
      database.run(sql, values, (error) => (error ? reject(error) : resolve()));
    });
  /** @type {{ entry: Entry, done: () => void }[]} */
  let waiting = [];
  let busy = false;

  async function flush() {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      await run('BEGIN IMMEDIATE');
      for (const [head, tail, values] of statements) {
        const rows = batch.map(({ entry }) => values(entry));
        const row = `(${Array(rows[0]?.length).fill('?').join()})`;
        await run(`${head} VALUES ${Array(rows.length).fill(row).join()} ${tail}`, rows.flat());
      }
      await run('COMMIT');
      for (const { done } of batch) done();
    }
    busy = false;
  }

  return (entry, done) => {
    waiting.push({ entry, done });
    if (busy) return;
    busy = true;
    setImmediate(() => void flush());
  };
}
