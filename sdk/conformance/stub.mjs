// A server that misbehaves by script, for the cases of kind `stub`. Every case has a base path of its own
// (/c/ID), so that runners of several languages share one stub without seeing each other.
import { createServer } from 'node:http';

/**
 * One answer. The last one of a script is given for ever.
 * @typedef {object} Action
 * @property {number} [status] 200 unless told
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

/** @typedef {{ script: Action[], next: number, startedAt: number, sockets: unknown[], requests: Recorded[] }} Case */

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

/** @param {Case} one @param {unknown} socket */
function connectionOf(one, socket) {
  if (!one.sockets.includes(socket)) one.sockets.push(socket);
  return one.sockets.indexOf(socket) + 1;
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
 * @param {WeakSet<object>} stale
 */
function perform(action, request, response, stale) {
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
  // Node would say Connection: close or Keep-Alive by itself: a pooled connection is what these cases are about.
  response.writeHead(action.status ?? 200, { ...headers, connection: 'keep-alive' });
  if (action.hang === 'body' || action.reset === 'body') {
    const half = payload.subarray(0, Math.floor(payload.length / 2));
    response.write(half, () => {
      // A moment, so that the head is read before the connection breaks.
      if (action.reset === 'body') setTimeout(() => socket.resetAndDestroy(), 50);
    });
    return;
  }
  if (action.after === 'stale') stale.add(socket);
  response.end(payload, () => {
    if (action.after === 'close') socket.end();
  });
}

/**
 * PUT /script/ID takes a list of actions, GET /requests/ID tells what came; everything under /c/ID/ is the case.
 * @returns {Promise<{ url: string, close(): Promise<void> }>}
 */
export async function startStub() {
  /** @type {Map<string, Case>} */
  const cases = new Map();
  /** @type {WeakSet<object>} */
  const stale = new WeakSet();

  /** @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response */
  async function answer(request, response) {
    const [, area = '', id = ''] = (request.url ?? '').split('/');
    const body = await read(request);
    if (area === 'script' && request.method === 'PUT') {
      cases.set(id, {
        script: JSON.parse(body),
        next: 0,
        startedAt: performance.now(),
        sockets: [],
        requests: [],
      });
      sendJson(response, 201, {});
      return;
    }
    const one = cases.get(id);
    if (!one) {
      sendJson(response, 500, { error: 'no-script' });
      return;
    }
    if (area === 'requests') {
      sendJson(response, 200, one.requests);
      return;
    }
    const { socket } = request;
    const dropped = stale.has(socket);
    one.requests.push({
      method: request.method ?? '',
      path: (request.url ?? '').slice(`/c/${id}`.length),
      headers: flatHeaders(request),
      body,
      connection: connectionOf(one, socket),
      atMs: Math.round(performance.now() - one.startedAt),
      dropped,
    });
    if (dropped) {
      socket.destroy();
      return;
    }
    const action = one.script[Math.min(one.next, one.script.length - 1)] ?? {};
    one.next += 1;
    if (action.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, action.delayMs));
    perform(action, request, response, stale);
  }

  const server = createServer((request, response) => {
    // A client that goes away in the middle is what many cases are about.
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
