import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { difference, substitute, within } from './match.mjs';

/** Runs one case. The SDK under test makes the calls that this file yields, and gives their outcomes back. */

/**
 * @typedef {object} Call for the SDK
 * @property {string} call
 * @property {Record<string, unknown>} args
 * @property {Record<string, unknown>} [options]
 * @property {number} [now] epoch seconds that the client's clock shows
 * @property {number} [laterSeconds] in place of `now`: so much later than the time
 * @property {string} [cancelWhen] an address: the call is cancelled once it answers
 */
/**
 * @typedef {object} Outcome of a call; has one of `result`, `error`, `cancelled` and `problem`
 * @property {any} [result]
 * @property {Record<string, unknown>} [error] kind, code, status, requestId, retryAfterSeconds, detail
 * @property {boolean} [cancelled]
 * @property {string} [problem] any other failure, or a rule of the language that was broken
 * @property {number} [elapsedMs]
 * @property {string} [printed] all that the errors of the outcome print
 */
/** @typedef {AsyncGenerator<Call, void, Outcome>} Run */
/** @typedef {{ url: string, stub: string, vkey: string, requestId: string, keys: Record<string, string>, variables: Record<string, string> }} Servers */
/** @typedef {Map<string, any>} Variables */

const SECRETS = ['principal', 'principal2', 'plainPrincipal', 'key', 'publishableKey'];

const hex = () => randomBytes(8).toString('hex');

/** @param {any} one @param {Servers} servers @param {string} base @returns {Variables} */
const createVariables = (one, servers, base) =>
  new Map([
    ['principal', `käthe+${hex()}@shop.example`],
    ['principal2', `käthe+${hex()}@shop.example`],
    ['plainPrincipal', `u${hex()}`],
    ['unique', hex()],
    ['url', base],
    ['key', servers.keys[one.client?.key ?? 'secret']],
    ['publishableKey', servers.keys['publishable']],
    ['vkey', servers.vkey],
    ['requestId', servers.requestId],
    ...Object.entries(servers.variables),
  ]);

/** @param {string | null} found */
function refuse(found) {
  if (found !== null) throw new Error(found);
}

/** @param {Outcome} outcome @param {any} expected @param {Variables} variables */
function judge({ result, error, cancelled, problem, elapsedMs = 0, printed = '' }, expected, variables) {
  const secrets = [...SECRETS.map((name) => variables.get(name)), ...(expected.hides ?? [])];
  const leaked = secrets.filter((secret) => printed.includes(secret));
  if (leaked.length > 0) throw new Error(`the error tells ${leaked.join(', ')}: ${printed}`);
  if (problem !== undefined) throw new Error(problem);
  if (expected.cancelled) {
    if (!cancelled) throw new Error(`cancelled, and it gave ${JSON.stringify(error ?? result)}`);
  } else if (expected.error) {
    if (!error) throw new Error(`it gave ${JSON.stringify(result)}, expected was an error`);
    refuse(difference(error, expected.error, 'error'));
  } else if (error || cancelled)
    throw new Error(`it failed: ${JSON.stringify(error ?? 'cancelled')} ${printed}`);
  else if ('result' in expected) refuse(difference(result, expected.result));
  if (expected.elapsedMs && !within(elapsedMs, expected.elapsedMs))
    throw new Error(`it took ${elapsedMs} ms, expected was ${JSON.stringify(expected.elapsedMs)}`);
}

/** @param {string} url @param {string} method @param {unknown} [value] @param {Record<string, string>} [headers] @returns {Promise<any>} */
async function sendJson(url, method, value, headers = {}) {
  const body = value === undefined ? null : JSON.stringify(value);
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.json();
}

/** The cookie of this person's banner, as the server answers a session of the person. @param {string} url @param {string} token @param {unknown} principalId */
async function fetchCookie(url, token, principalId) {
  const headers = { authorization: `Bearer ${token}` };
  const { state } = await sendJson(`${url}/v1/consent/state`, 'POST', { principalId }, headers);
  return `gpd_consent=${state}`;
}

/** @param {any} step @param {Variables} variables @param {boolean} isFake @returns {AsyncGenerator<Call, Outcome, Outcome>} */
async function* callOf(
  { call, args, options = {}, now, laterSeconds, cancelAfterRequests },
  variables,
  isFake,
) {
  const came = `${variables.get('url').replace('/c/', '/came/')}/${cancelAfterRequests}`;
  const cancelWhen = cancelAfterRequests === undefined ? undefined : came;
  const rest = { ...substitute({ args, options }, variables), now, laterSeconds, cancelWhen };
  if (call !== 'cookieFor' || isFake) return yield { call, ...rest };
  const { result, ...failed } = yield { call: 'sessions.create', ...rest };
  if (!result) return failed;
  return { result: await fetchCookie(variables.get('url'), result.token, rest.args.principalId) };
}

/** @param {readonly any[]} steps @param {Variables} variables @param {boolean} isFake @returns {Run} */
async function* runSteps(steps, variables, isFake) {
  for (const [i, step] of steps.entries()) {
    await sleep(step.waitMs ?? 0);
    for (let time = 0; time < (step.times ?? 1); time += 1) {
      const outcome = yield* callOf(step, variables, isFake);
      try {
        judge(outcome, substitute(step.expect, variables), variables);
      } catch (error) {
        throw new Error(
          `step ${i} (${step.call}): ${error instanceof Error ? error.message : String(error)}`,
        );
      }
      for (const [name, path] of Object.entries(step.save ?? {})) {
        const parts = path === '' ? [] : path.split('.');
        variables.set(
          name,
          parts.reduce((/** @type {any} */ inner, /** @type {string} */ part) => inner[part], outcome.result),
        );
      }
    }
  }
}

/** @param {any} request as stub.mjs records it @param {any} each */
function checkRequest(request, { absentHeaders = [], body, ...rest }) {
  refuse(difference(request, rest, 'request'));
  if (body !== undefined) refuse(difference(JSON.parse(request.body), body, 'request.body', true));
  const there = absentHeaders.filter((/** @type {string} */ name) => name in request.headers);
  if (there.length > 0) throw new Error(`the request has ${there.join(', ')}`);
}

/** @param {readonly any[]} requests @param {'none' | 'one' | 'distinct'} rule */
function checkKeys(requests, rule) {
  const keys = requests.map(({ headers }) => headers['idempotency-key']).filter((key) => key);
  const different = new Set(keys).size;
  const right = {
    none: keys.length === 0,
    one: keys.length === requests.length && different === 1,
    distinct: keys.length === requests.length && different === keys.length,
  };
  if (!right[rule])
    throw new Error(`Idempotency-Key: expected was ${rule}, there were ${JSON.stringify(keys)}`);
}

/** @param {readonly any[]} requests @param {any} expected */
function checkRequests(requests, { count, connections, idempotencyKey, gapsMs = [], each, inOrder }) {
  const sockets = new Set(requests.map(({ connection }) => connection)).size;
  if (requests.length !== (count ?? inOrder?.length ?? requests.length))
    throw new Error(`${requests.length} requests came, expected were ${count ?? inOrder.length}`);
  if (connections && !within(sockets, connections))
    throw new Error(`${sockets} connections were used, expected were ${JSON.stringify(connections)}`);
  if (idempotencyKey) checkKeys(requests, idempotencyKey);
  for (const [i, request] of requests.entries()) {
    if (each) checkRequest(request, each);
    if (inOrder) checkRequest(request, inOrder[i]);
  }
  for (const [i, range] of gapsMs.entries()) {
    const gap = (requests[i + 1]?.atMs ?? Number.NaN) - requests[i]?.atMs;
    if (!within(gap, range)) throw new Error(`${gap} ms lay between request ${i} and the next`);
  }
}

/** @param {any} one @param {Servers} servers @returns {Run} @throws {Error} that describes the problem */
export async function* runCase(one, servers) {
  const id = hex();
  const base = one.kind === 'stub' ? `${servers.stub}/c/${id}` : servers.url;
  const variables = createVariables(one, servers, base);
  if (one.kind === 'stub')
    await sendJson(`${servers.stub}/script/${id}`, 'PUT', substitute(one.script, variables));
  const { key: _name, ...options } = one.client ?? {};
  const args = { ...options, url: base, key: variables.get('key') };
  if (one.kind === 'fake') yield* opening('fake', options);
  else if (one.kind !== 'pure') yield* opening('configure', args);
  yield* runSteps(one.steps, variables, one.kind === 'fake');
  if (one.requests) {
    const requests = await sendJson(`${servers.stub}/requests/${id}`, 'GET');
    checkRequests(requests, substitute(one.requests, variables));
  }
  if (!one.fake) return;
  yield* opening('fake', {});
  yield* runSteps(one.steps, createVariables(one, servers, base), true);
}

/** @param {string} call @param {Record<string, unknown>} args @returns {Run} */
async function* opening(call, args) {
  const { error, problem } = yield { call, args };
  if (error || problem) throw new Error(`${call}: ${problem ?? JSON.stringify(error)}`);
}
