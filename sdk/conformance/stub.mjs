// A server that misbehaves as scripted, for the cases of kind `stub`. Every case has a separate base path (/c/ID), so that the
// runners of all languages can share one stub.
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * One answer of a script. The last one is repeated.
 * @typedef {object} Action
 * @property {number} [status] by default 200
 * @property {Record<string, string>} [headers]
 * @property {unknown} [body] sent as JSON
 * @property {string} [text] sent as it is, in place of `body`
 * @property {number} [delayMs] before the head is sent
 * @property {'head' | 'body'} [hang] never answers, or sends the head and half of the body and nothing more
 * @property {'head' | 'body'} [reset] breaks the connection before the head, or in the middle of the body
 * @property {'close' | 'stale'} [after] after the answer the connection is closed without a word, or the next request
 *   on it is met by a broken connection
 */

/**
 * @typedef {object} Recorded
 * @property {string} method
 * @property {string} path below the base path
 * @property {Record<string, string>} headers names in lower case
 * @property {string} body
 * @property {number} connection connections are numbered from 1 in the order of the case
 * @property {number} atMs since the script was set
 * @property {boolean} dropped met by a broken connection that was due to `after: stale`
 */

/** @typedef {{ script: Action[], next: number, acted: EventEmitter, startedAt: number, sockets: unknown[], requests: Recorded[] }} Case */

/** @param {import('node:http').IncomingMessage} request */
async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** @param {import('node:http').IncomingMessage} request */
function flatHeaders(request) {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : `${value}`,
    ]),
  );
}

/** @param {Case} testCase @param {unknown} socket */
function connectionOf(testCase, socket) {
  if (!testCase.sockets.includes(socket)) testCase.sockets.push(socket);
  return testCase.sockets.indexOf(socket) + 1;
}

/** @param {import('node:http').ServerResponse} response @param {number} status @param {unknown} value */
function sendJson(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/**
 * @param {Action} action
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {WeakSet<object>} brokenSockets
 */
function perform(action, request, response, brokenSockets) {
  const { socket } = request;
  if (action.hang === 'head') return;
  if (action.reset === 'head') {
    socket.resetAndDestroy();
    return;
  }
  const text = action.text ?? (action.body === undefined ? '' : JSON.stringify(action.body));
  const payload = Buffer.from(text);
  const headers = {
    'content-type': 'application/json',
    'content-length': String(payload.length),
    ...action.headers,
  };
  // Set explicitly, because Node would choose Connection itself, and these cases are about pooled connections.
  response.writeHead(action.status ?? 200, { ...headers, connection: 'keep-alive' });
  if (action.hang === 'body' || action.reset === 'body') {
    const half = payload.subarray(0, Math.floor(payload.length / 2));
    response.write(half, () => {
      // After a moment, so that the client reads the head before the connection breaks.
      if (action.reset === 'body') setTimeout(() => socket.resetAndDestroy(), 50);
    });
    return;
  }
  if (action.after === 'stale') brokenSockets.add(socket);
  response.end(payload, () => {
    if (action.after === 'close') socket.end();
  });
}

/**
 * PUT /script/ID takes a list of actions, GET /requests/ID returns the recorded requests, GET /came/ID/N answers once so many were acted
 * on, and /c/ID/… belongs to the case.
 * @returns {Promise<{ url: string, close(): Promise<void> }>}
 */
export async function startStub() {
  /** @type {Map<string, Case>} */
  const cases = new Map();
  /** @type {WeakSet<object>} */
  const brokenSockets = new WeakSet();

  /** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
  async function answer(request, response) {
    const [, area = '', id = '', count = ''] = (request.url ?? '').split('/');
    const body = await read(request);
    if (area === 'script' && request.method === 'PUT') {
      cases.set(id, {
        script: JSON.parse(body),
        next: 0,
        acted: new EventEmitter(),
        startedAt: performance.now(),
        sockets: [],
        requests: [],
      });
      sendJson(response, 201, {});
      return;
    }
    const testCase = cases.get(id);
    if (!testCase) {
      sendJson(response, 500, { error: 'no-script' });
      return;
    }
    if (area === 'requests') {
      sendJson(response, 200, testCase.requests);
      return;
    }
    if (area === 'came') {
      while (testCase.next < Number(count)) await once(testCase.acted, 'request');
      // After a moment, in which the client mostly reads its answer.
      await sleep(50);
      sendJson(response, 200, {});
      return;
    }
    const { socket } = request;
    const isDropped = brokenSockets.has(socket);
    testCase.requests.push({
      method: request.method ?? '',
      path: (request.url ?? '').slice(`/c/${id}`.length),
      headers: flatHeaders(request),
      body,
      connection: connectionOf(testCase, socket),
      atMs: Math.round(performance.now() - testCase.startedAt),
      dropped: isDropped,
    });
    if (isDropped) {
      socket.destroy();
      return;
    }
    const action = testCase.script[Math.min(testCase.next, testCase.script.length - 1)] ?? {};
    testCase.next += 1;
    if (action.delayMs !== undefined) await sleep(action.delayMs);
    perform(action, request, response, brokenSockets);
    testCase.acted.emit('request');
  }

  const server = createServer((request, response) => {
    // Expected: in many cases the client closes the connection in the middle.
    answer(request, response).catch(() => request.socket.destroy());
  });
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
