import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { readCases } from './check-cases.mjs';
import { runCase } from './run-case.mjs';

/** Serves the runs of cases: an SDK posts the outcome of each call, and is answered with the next one. */

/** @param {import('./run-case.mjs').Servers} servers */
export async function startRuns(servers) {
  const cases = readCases();
  /** @type {Map<string, import('./run-case.mjs').Run>} */
  const running = new Map();

  /** @param {string} name of a case, or id of a run @param {any} outcome */
  async function next(name, outcome) {
    const one = cases.find((each) => each.name === name);
    const id = one ? randomUUID() : name;
    const run = one ? runCase(one, servers) : running.get(id);
    if (!run) return { done: true, problem: `there is no case and no run ${name}` };
    running.set(id, run);
    try {
      const { done, value } = await run.next(outcome);
      if (!done) return { run: id, ...value };
      running.delete(id);
      return { done: true };
    } catch (error) {
      running.delete(id);
      return { done: true, problem: error instanceof Error ? error.message : String(error) };
    }
  }

  const server = createServer((request, response) => {
    const name = decodeURIComponent((request.url ?? '').slice(1));
    json(request)
      .then((outcome) => next(name, outcome))
      .then((answer) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      })
      .catch((/** @type {Error} */ error) => response.writeHead(400).end(error.message));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}
