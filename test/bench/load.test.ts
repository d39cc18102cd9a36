import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArrivals } from '../../bench/arrivals.mjs';
import { runNode } from '../../bench/lib/child.ts';
import { LOAD, type LoadResult, writeRequests } from '../../bench/lib/requests.ts';

const COUNT = 1500;
const RATE = 1000;
const STALL_MS = 500;

let directory: string;
let file: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gpd-load-'));
  file = await writeRequests(join(directory, 'requests'), COUNT, (i) => ({ path: `/${i}` }));
});

afterAll(() => rmSync(directory, { recursive: true }));

async function load(
  listener: RequestListener,
  options: Readonly<Record<string, string | number>>,
): Promise<LoadResult> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const named = Object.entries({ file, port, count: COUNT, ...options });
    const args = named.map(([name, value]) => `--${name}=${value}`);
    const { stdout } = await runNode([LOAD, ...args], { cwd: directory });
    return JSON.parse(stdout) as LoadResult;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Answers at once, but for one stall: whatever is there then, or comes, waits until it is over. */
function stallOnce(): RequestListener {
  let seen = 0;
  let until = 0;
  return (_request, response) => {
    seen += 1;
    if (seen === Math.floor(COUNT / 3)) until = performance.now() + STALL_MS;
    const answer = (): void => void response.writeHead(200, { 'content-length': 2 }).end('{}');
    const wait = until - performance.now();
    if (wait > 0) setTimeout(answer, wait);
    else answer();
  };
}

describe('the load generator', () => {
  // What a busy machine adds to every answer is no fault of the generator's.
  const BUSY = { retry: 3 };

  it('sees one stall in an open loop in every request that was due meanwhile', BUSY, async () => {
    const result = await load(stallOnce(), { rate: RATE, connections: 20 });
    expect(result.statuses).toEqual({ 200: COUNT });
    // A third of the requests were due while it lasted; only 20 of them had a connection.
    expect(result.p99).toBeGreaterThan(STALL_MS * 0.8);
    expect(result.p50).toBeLessThan(STALL_MS / 2);
    expect(result.waitingMost).toBeGreaterThan(100);
  });

  it('hides the same stall in a closed loop, but for the requests that were on the way', BUSY, async () => {
    const result = await load(stallOnce(), { connections: 2 });
    expect(result.p99).toBeLessThan(STALL_MS / 2);
    expect(result.p999).toBeGreaterThan(STALL_MS * 0.8);
  });

  it('keeps the rate that it was told', async () => {
    const { seconds } = await load(stallOnce(), { rate: RATE, connections: 50 });
    expect(seconds).toBeGreaterThan((COUNT / RATE) * 0.85);
    expect(seconds).toBeLessThan((COUNT / RATE) * 3);
  });

  it('sends again what was refused, and times the status that it was told', async () => {
    const refused = new Set<string>();
    const taken: string[] = [];
    const listener: RequestListener = ({ url = '' }, response) => {
      const again = refused.has(url);
      if (again) taken.push(url);
      else refused.add(url);
      const answer = (): void => void response.writeHead(again ? 200 : 503, { 'content-length': 0 }).end();
      if (again) answer();
      else setTimeout(answer, 100);
    };
    const result = await load(listener, { connections: 5, count: 100, again: 503, status: 200 });
    expect(result.statuses[503]).toBe(refused.size);
    expect(result.statuses[200]).toBe(100 - refused.size);
    expect(new Set(taken).size).toBe(taken.length);
    expect(result.read).toBe(refused.size);
    expect(refused.size).toBeLessThan(60);
    expect(result.p50).toBeLessThan(100);
  });

  it('fails when the server closes a connection', async () => {
    const listener: RequestListener = (request) => request.socket.destroy();
    await expect(load(listener, { rate: RATE, connections: 2 })).rejects.toThrow(/ended with/);
  });

  it('fails when there are too few requests', async () => {
    await expect(load(stallOnce(), { count: COUNT + 1, connections: 2 })).rejects.toThrow(/ended with/);
  });
});

describe('makeArrivals', () => {
  const gaps = (seed: number, count: number): number[] => {
    const next = makeArrivals(RATE, seed);
    let before = 0;
    return Array.from({ length: count }, () => {
      const at = next();
      const gap = at - before;
      before = at;
      return gap;
    });
  };

  it('is the same for the same seed only', () => {
    expect(gaps(1, 100)).toEqual(gaps(1, 100));
    expect(gaps(1, 100)).not.toEqual(gaps(2, 100));
  });

  it('is a Poisson process: gaps with the mean of the rate, and as wide as their mean', () => {
    const all = gaps(7, 50_000);
    const mean = all.reduce((sum, gap) => sum + gap, 0) / all.length;
    const deviation = Math.sqrt(all.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / all.length);
    expect(mean).toBeCloseTo(1000 / RATE, 1);
    expect(deviation / mean).toBeCloseTo(1, 1);
    expect(Math.min(...all)).toBeGreaterThan(0);
  });
});
