import { Agent } from 'node:http';
import { ask, JSON_TYPE, type Reply } from '../../support/http.ts';

/** Many requests over kept connections, as a balancer and a busy site send them. */

export interface Call {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text as it is, any other value as JSON. */
  readonly body?: unknown;
}

export interface Caller {
  (base: string, call: Call): Promise<Reply>;
  close(): void;
}

/** @throws {Error} of the returned function: the connection broke before a whole answer */
export function createCaller(maxSockets = 64): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets });
  const call = (base: string, { method, path, headers = {}, body }: Call): Promise<Reply> => {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    if (text === undefined) return ask(base, path, { method: method ?? 'GET', headers, by: { agent } });
    const typed = { ...JSON_TYPE, ...headers };
    return ask(base, path, { method: method ?? 'POST', headers: typed, body: text, by: { agent } });
  };
  return Object.assign(call, { close: () => agent.destroy() });
}

/** `work` for 0…count-1, so many at once; answers in order. */
export async function inParallel<T>(
  count: number,
  concurrency: number,
  work: (i: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const i = next;
      next += 1;
      results[i] = await work(i);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker));
  return results;
}

export function countBy<T>(
  values: readonly T[],
  keyOf: (value: T) => string | number,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[keyOf(value)] = (counts[keyOf(value)] ?? 0) + 1;
  return counts;
}
