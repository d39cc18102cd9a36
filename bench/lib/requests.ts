import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { runNode } from './child.ts';
import { cpuSeconds } from './proc.ts';
import type { LoadResult, Running } from './rig.ts';

/** Plain JSON requests, written before anything is timed in the format that `bench/load.mjs` sends. */

export interface JsonRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** None: the request is a GET. */
  readonly body?: object;
}

export const LOAD = join(fileURLToPath(new URL('..', import.meta.url)), 'load.mjs');

function toBytes({ path, headers = {}, body }: JsonRequest): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const own = { Host: 'localhost', Connection: 'keep-alive', ...headers };
  const typed = body === undefined ? own : { ...own, 'Content-Type': 'application/json' };
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

export interface Drive {
  readonly file: string;
  readonly skip: number;
  readonly count: number;
  /** The one status that is right. */
  readonly status: number;
}

/** Sends them over 50 connections from a process of its own. @throws when an answer has another status */
export async function drive(port: number, requests: Drive): Promise<LoadResult> {
  const { file, skip, count, status } = requests;
  const args = Object.entries({ file, port, skip, count }).map(([name, value]) => `--${name}=${value}`);
  const { stdout } = await runNode([LOAD, ...args], { cwd: process.cwd() });
  const result = JSON.parse(stdout) as LoadResult;
  if (result.statuses[status] !== count)
    throw new Error(`${count} answers of ${status} were due, there were ${JSON.stringify(result.statuses)}`);
  return result;
}

export interface Measured extends LoadResult {
  /** Microseconds of CPU of the server for one request, all threads. */
  readonly cpuMicros: number;
}

/** Warms a server up with the first requests of a file and measures it with the next ones; stops it. */
export async function measureServer(
  server: Running,
  requests: Omit<Drive, 'skip'>,
  warmUp: number,
): Promise<Measured> {
  try {
    await drive(server.port, { ...requests, skip: 0, count: warmUp });
    const before = cpuSeconds(server.pid);
    const result = await drive(server.port, { ...requests, skip: warmUp });
    return { ...result, cpuMicros: ((cpuSeconds(server.pid) - before) / requests.count) * 1e6 };
  } finally {
    await server.stop();
  }
}
