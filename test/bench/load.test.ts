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

describe('the load generator', () => {
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
  });

  it('fails when the server closes a connection', async () => {
    const listener: RequestListener = (request) => request.socket.destroy();
    await expect(load(listener, { rate: RATE, connections: 2 })).rejects.toThrow(/ended with/);
  });

  it('fails when there are too few requests', async () => {
    const listener: RequestListener = (_request, response) => void response.end();
    await expect(load(listener, { count: COUNT + 1, connections: 2 })).rejects.toThrow(/ended with/);
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
