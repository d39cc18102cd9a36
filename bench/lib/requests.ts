import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { runNode } from './child.ts';

/** Writes plain requests in the format of `bench/load.mjs` before anything is measured, and runs that program. */

export interface JsonRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Without a body the request is a GET. */
  readonly body?: object;
}

const LOAD = join(fileURLToPath(new URL('..', import.meta.url)), 'load.mjs');

function toBytes({ path, headers = {}, body }: JsonRequest): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const baseHeaders = { Host: 'localhost', Connection: 'keep-alive', ...headers };
  const typed = body === undefined ? baseHeaders : { ...baseHeaders, 'Content-Type': 'application/json' };
  const lines = Object.entries({ ...typed, 'Content-Length': Buffer.byteLength(text) });
  const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\n${fields}\r\n${text}`);
}

export async function writeRequests(
  file: string,
  count: number,
  make: (i: number) => JsonRequest,
): Promise<string> {
  const out = createWriteStream(file);
  for (let i = 0; i < count; i += 1) {
    const request = toBytes(make(i));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(request.length);
    if (!out.write(Buffer.concat([length, request]))) await once(out, 'drain');
  }
  out.end();
  await finished(out);
  return file;
}

export const PURPOSE = 'device-identification';
export const personId = (i: number): string => `person-${i}@shop.example`;

export const grantRequest = (key: string, i: number): JsonRequest => ({
  path: '/v1/consent/grant',
  headers: { Authorization: `Bearer ${key}` },
  body: { principalId: personId(i), purposes: [PURPOSE] },
});

export interface Load {
  readonly file: string;
  readonly skip: number;
  readonly count: number;
  /** The default is 50. */
  readonly connections?: number;
  /** Requests per second, for an open loop. */
  readonly rate?: number;
  /** Only answers with this status count for latencies; by default all do. */
  readonly status?: number;
}

export interface LoadResult {
  readonly statuses: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** Milliseconds; in an open loop from when a request was due. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  /** Open loop: the largest number of requests that were due and found no free connection. */
  readonly waitingMost: number;
  /** Mean size of an answer's body. */
  readonly bodyBytes: number;
}

/** Runs the load generator in a separate process, so that it does not compete with the bench. */
export async function load(port: number, options: Load): Promise<LoadResult> {
  const args = Object.entries({ ...options, port }).map(([name, value]) => `--${name}=${value}`);
  const { stdout } = await runNode([LOAD, ...args], { cwd: process.cwd() });
  return JSON.parse(stdout) as LoadResult;
}

/** @throws {Error} unless every answer has the expected status */
export async function drive(port: number, options: Load & { readonly status: number }): Promise<LoadResult> {
  const { count, status } = options;
  const result = await load(port, options);
  if (result.statuses[status] !== count)
    throw new Error(`${count} answers of ${status} were due, there were ${JSON.stringify(result.statuses)}`);
  return result;
}
