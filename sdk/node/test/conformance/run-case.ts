import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { SignedRequest } from '../../src/agents.ts';
import { ConsentClient } from '../../src/client.ts';
import { ConsentError, type ErrorKind } from '../../src/errors.ts';
import { FakeConsent } from '../../src/fake.ts';
import type { Consent } from '../../src/methods.ts';
import type { ClientOptions } from '../../src/options.ts';
import { verifyConsistency, verifyProof } from '../../src/proof.ts';
import type { HeaderSource } from '../../src/request.ts';
import type {
  BrowserPrincipal,
  CallOptions,
  Check,
  ConsentWrite,
  HistoryEvent,
  PolicyDefinition,
  PurposeDefinition,
} from '../../src/types.ts';
import { signWebhook, verifyWebhook, type WebhookHeaders } from '../../src/webhook.ts';
import type { Case, Range, RequestExpectation, RequestsExpectation, Step } from './case.ts';
import { difference, substitute, type Variables, within } from './match.ts';
import type { Servers } from './servers.ts';

/** Runs one case; throws an error that describes the problem. */

type Args = Readonly<Record<string, unknown>>;

interface Run {
  client: Consent | null;
  /** Milliseconds since the epoch, for the next call. */
  now: () => number;
  readonly variables: Variables;
  /** Texts that no error may contain. */
  readonly hidden: string[];
}

function clientOf({ client }: Run): Consent {
  if (!client) throw new Error('this case has no client');
  return client;
}

function fakeOf({ client }: Run): FakeConsent {
  if (client instanceof FakeConsent) return client;
  throw new Error('this case has no fake');
}

const CALLS: Readonly<Record<string, (run: Run, args: Args, options: CallOptions) => unknown>> = {
  isAllowed: (run, args, options) => clientOf(run).isAllowed(args as unknown as Check, options),
  canProcess: (run, args, options) => clientOf(run).canProcess(args as unknown as Check, options),
  canProcessMany: (run, args, options) => clientOf(run).canProcessMany(args['checks'] as Check[], options),
  grant: (run, args, options) => clientOf(run).grant(args as unknown as ConsentWrite, options),
  deny: (run, args, options) => clientOf(run).deny(args as unknown as ConsentWrite, options),
  withdraw: (run, args, options) => clientOf(run).withdraw(args as unknown as ConsentWrite, options),
  state: (run, args, options) => clientOf(run).state(String(args['principalId']), options),
  history: (run, { principalId, ...page }, options) =>
    clientOf(run).history(String(principalId), page, options),
  'sessions.create': (run, args, options) =>
    clientOf(run).sessions.create(String(args['principalId']), options),
  historyAll: async (run, { principalId, ...page }, options) => {
    const events: HistoryEvent[] = [];
    for await (const event of clientOf(run).historyAll(String(principalId), page, options))
      events.push(event);
    return events;
  },
  join: (run, { session, ...browser }, options) =>
    clientOf(run).join(String(session), browser as unknown as BrowserPrincipal, options),
  link: (run, { session, token }, options) => clientOf(run).link(String(session), String(token), options),
  erase: (run, { session }, options) => clientOf(run).erase(String(session), options),
  purposes: (run, _args, options) => clientOf(run).purposes(options),
  savePurposes: (run, { purposes, ...all }, options) =>
    clientOf(run).savePurposes(purposes as PurposeDefinition[], all, options),
  policies: (run, _args, options) => clientOf(run).policies(options),
  publishPolicy: (run, args, options) =>
    clientOf(run).publishPolicy(args as unknown as PolicyDefinition, options),
  checkpoint: (run, _args, options) => clientOf(run).checkpoint(options),
  vkey: (run, _args, options) => clientOf(run).vkey(options),
  exportLog: (run, _args, options) => clientOf(run).exportLog(options),
  signWebhook: (_run, { body, ...rest }) => signWebhook(String(body), rest as unknown as { secret: string }),
  receipt: (run, args, options) => clientOf(run).receipt(Number(args['seq']), options),
  proof: (run, args, options) => clientOf(run).proof(Number(args['seq']), options),
  decision: (run, args, options) => clientOf(run).decision(String(args['requestId']), options),
  checkout: (run, { requestId, ...deadline }, options) =>
    clientOf(run).checkout(requestId, { ...options, ...deadline }),
  reportOutcome: (run, { requestId, outcome, ...time }, options) =>
    clientOf(run).reportOutcome(String(requestId), String(outcome), time, options),
  agent: (run, { body, ...request }, options) =>
    clientOf(run).agent(request as unknown as SignedRequest, {
      ...options,
      body: body === undefined ? undefined : Buffer.from(body as string),
    }),
  ping: (run, _args, options) => clientOf(run).ping(options),
  readState: (run, { cookie }, options) => clientOf(run).readState(cookie as string | null, options),
  currentState: (run, { cookie }, options) => clientOf(run).currentState(cookie as string | null, options),
  may: (run, { headers, purposes, principalId }, options) =>
    clientOf(run).may(headers as HeaderSource, purposes as string[], {
      principalId: principalId as string | undefined,
      ...options,
    }),
  cookieFor: (run, { principalId }) => cookieFor(run, String(principalId)),
  'fake.setUnavailable': (run, { unavailable }) => fakeOf(run).setUnavailable(unavailable === true),
  'fake.setNextError': (run, { kind, ...facts }) => fakeOf(run).setNextError(kind as ErrorKind, facts),
  'fake.setTtlDays': (run, { purpose, days }) => fakeOf(run).setTtlDays(String(purpose), Number(days)),
  'fake.setPurposes': (run, { purposes }) => fakeOf(run).setPurposes(purposes as string[]),
  'fake.setDecision': (run, { requestId, ...verdict }) => fakeOf(run).setDecision(String(requestId), verdict),
  close: (run) => clientOf(run).close(),
  verifyProof: (_run, { proof, ...expected }) =>
    verifyProof(String(proof), expected as unknown as { vkey: string }),
  verifyConsistency: (_run, { oldSize, oldRoot, newSize, newRoot, proof }) =>
    verifyConsistency(Number(oldSize), String(oldRoot), Number(newSize), String(newRoot), proof as string[]),
  verifyWebhook: (_run, { body, headers, ...options }) =>
    verifyWebhook(String(body), headers as WebhookHeaders, options as unknown as { secrets: string[] }),
  configure: (run, args) => {
    run.client = new ConsentClient({ ...(args as unknown as ClientOptions), now: () => run.now() });
  },
  fromEnv: (run, args) => {
    run.client = ConsentClient.fromEnv({}, args['env'] as Record<string, string>);
  },
};

function createVariables(one: Case, servers: Servers, base: string): Variables {
  const hex = (): string => randomBytes(8).toString('hex');
  return new Map<string, unknown>([
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
}

/** The cookie that the banner of this person has: of the fake, or as the server answers a session of the person. */
async function cookieFor(run: Run, principalId: string): Promise<string> {
  const client = clientOf(run);
  if (client instanceof FakeConsent) return client.cookieFor(principalId);
  const { token } = await client.sessions.create(principalId);
  const response = await fetch(`${String(run.variables.get('url'))}/v1/consent/state`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ principalId }),
  });
  const { state } = (await response.json()) as { readonly state?: string };
  return `gpd_consent=${state}`;
}

type Outcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: unknown };

/** Answers once the stub acted on so many requests of the case. */
const cameUrl = (variables: Variables, count: number): string =>
  `${String(variables.get('url')).replace('/c/', '/came/')}/${count}`;

async function invoke(run: Run, step: Step): Promise<Outcome & { readonly elapsedMs: number }> {
  const call = CALLS[step.call];
  if (!call) throw new Error(`there is no call ${step.call}`);
  const args = substitute(step.args, run.variables) as Args;
  const controller = new AbortController();
  const options = {
    ...(substitute(step.options ?? {}, run.variables) as CallOptions),
    signal: controller.signal,
  };
  const { cancelAfterRequests, now, laterSeconds = 0 } = step;
  run.now = () => (now === undefined ? Date.now() + laterSeconds * 1000 : now * 1000);
  if (cancelAfterRequests !== undefined)
    void sendJson('GET', cameUrl(run.variables, cancelAfterRequests)).then(() => controller.abort());
  const startedAt = performance.now();
  const outcome = await Promise.resolve()
    .then(() => call(run, args, options))
    .then(
      (result): Outcome => ({ ok: true, result }),
      (error: unknown): Outcome => ({ ok: false, error }),
    );
  return { ...outcome, elapsedMs: performance.now() - startedAt };
}

function checkHidden(error: unknown, run: Run, furtherSecrets: readonly string[]): void {
  const errorText = [
    String(error),
    inspect(error, { depth: 9, showHidden: true }),
    JSON.stringify(error),
  ].join('\n');
  const secrets = [...run.hidden, ...furtherSecrets].filter((secret) => errorText.includes(secret));
  if (secrets.length > 0) throw new Error(`the error tells ${secrets.join(', ')}: ${errorText}`);
}

function checkError(error: unknown, expected: Readonly<Record<string, unknown>>): void {
  if (!(error instanceof ConsentError)) throw new Error(`this is no ConsentError: ${inspect(error)}`);
  const { kind, code, status, requestId, retryAfterSeconds, detail } = error;
  const facts = { kind, code, status, requestId, retryAfterSeconds, detail };
  const found = difference(facts, expected, 'error');
  if (found) throw new Error(found);
}

async function runStep(run: Run, step: Step): Promise<void> {
  const outcome = await invoke(run, step);
  const expected = substitute(step.expect, run.variables) as Step['expect'];
  if (!outcome.ok) checkHidden(outcome.error, run, expected.hides ?? []);
  if (expected.cancelled) {
    const name = !outcome.ok && outcome.error instanceof Error ? outcome.error.name : 'no error';
    if (name !== 'AbortError') throw new Error(`cancelled, and it gave ${name}`);
  } else if (expected.error) {
    if (outcome.ok) throw new Error(`it gave ${JSON.stringify(outcome.result)}, expected was an error`);
    checkError(outcome.error, expected.error);
  } else if (!outcome.ok) throw outcome.error;
  if (outcome.ok && 'result' in expected) {
    const found = difference(outcome.result, expected.result);
    if (found) throw new Error(found);
  }
  const { elapsedMs } = expected;
  if (elapsedMs && !within(outcome.elapsedMs, elapsedMs)) {
    throw new Error(`it took ${outcome.elapsedMs} ms, expected was ${JSON.stringify(elapsedMs)}`);
  }
  for (const [name, path] of Object.entries(step.save ?? {})) {
    const parts = path === '' ? [] : path.split('.');
    const value = parts.reduce<unknown>((inner, part) => (inner as Args)[part], outcome.ok && outcome.result);
    run.variables.set(name, value);
  }
}

interface Recorded {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connection: number;
  readonly atMs: number;
}

function checkRequest(request: Recorded, each: RequestExpectation): void {
  const { absentHeaders = [], body, ...rest } = each;
  const found =
    difference(request, rest, 'request') ??
    (body === undefined ? null : difference(JSON.parse(request.body), body, 'request.body', true));
  if (found) throw new Error(found);
  const there = absentHeaders.filter((name) => name in request.headers);
  if (there.length > 0) throw new Error(`the request has ${there.join(', ')}`);
}

function checkKeys(requests: readonly Recorded[], rule: 'none' | 'one' | 'distinct'): void {
  const keys = requests.map(({ headers }) => headers['idempotency-key']).filter((key) => key);
  const right = {
    none: keys.length === 0,
    one: keys.length === requests.length && new Set(keys).size === 1,
    distinct: keys.length === requests.length && new Set(keys).size === keys.length,
  };
  if (!right[rule])
    throw new Error(`Idempotency-Key: expected was ${rule}, there were ${JSON.stringify(keys)}`);
}

function checkRequests(requests: readonly Recorded[], expected: RequestsExpectation): void {
  const { count, connections, idempotencyKey, gapsMs = [], each, inOrder } = expected;
  const sockets = new Set(requests.map(({ connection }) => connection)).size;
  if (count !== undefined && requests.length !== count) {
    throw new Error(`${requests.length} requests came, expected were ${count}`);
  }
  if (connections && !within(sockets, connections)) {
    throw new Error(`${sockets} connections were used, expected were ${JSON.stringify(connections)}`);
  }
  if (idempotencyKey) checkKeys(requests, idempotencyKey);
  if (each) for (const request of requests) checkRequest(request, each);
  if (inOrder && inOrder.length !== requests.length) throw new Error(`${requests.length} requests came`);
  for (const [i, request] of requests.entries()) if (inOrder?.[i]) checkRequest(request, inOrder[i]);
  for (const [i, range] of gapsMs.entries()) {
    const gap = (requests[i + 1]?.atMs ?? Number.NaN) - (requests[i]?.atMs ?? Number.NaN);
    if (!within(gap, range as Range)) throw new Error(`${gap} ms lay between request ${i} and the next`);
  }
}

/** Without fetch, whose connection pool belongs to the process: a case must have separate connections. */
async function sendJson(method: string, url: string, value?: unknown): Promise<unknown> {
  const request = http.request(url, { method, agent: false });
  request.end(value === undefined ? undefined : JSON.stringify(value));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const answer = await text(response);
  if (!String(response.statusCode).startsWith('2'))
    throw new Error(`the stub answered ${response.statusCode}`);
  return JSON.parse(answer) as unknown;
}

async function runSteps(run: Run, steps: readonly Step[]): Promise<void> {
  for (const [i, step] of steps.entries()) {
    if (step.waitMs !== undefined) await sleep(step.waitMs);
    for (let time = 0; time < (step.times ?? 1); time += 1) {
      await runStep(run, step).catch((error: unknown) => {
        throw new Error(
          `step ${i} (${step.call}): ${error instanceof Error ? error.message : String(error)}`,
          {
            cause: error,
          },
        );
      });
    }
  }
  await run.client?.close();
}

const SECRETS = ['principal', 'principal2', 'plainPrincipal', 'key', 'publishableKey'];

const createRun = (variables: Variables): Run => ({
  client: null,
  now: Date.now,
  variables,
  hidden: SECRETS.map((name) => String(variables.get(name))),
});

/** A fake with the purposes of the conformance server. */
function createFake(run: Run, options: object = {}): FakeConsent {
  const fake = new FakeConsent({ ...options, now: () => run.now() });
  fake.setGpcPolicy('support', 'ignore');
  fake.setGpcPolicy('offers', 'ask');
  return fake;
}

export async function runCase(one: Case, servers: Servers): Promise<void> {
  const id = randomBytes(8).toString('hex');
  const base = one.kind === 'stub' ? `${servers.stub}/c/${id}` : servers.url;
  const variables = createVariables(one, servers, base);
  if (one.kind === 'stub') {
    await sendJson('PUT', `${servers.stub}/script/${id}`, substitute(one.script, variables));
  }
  const run = createRun(variables);
  const { key: _key, ...options } = one.client ?? {};
  if (one.kind === 'fake') run.client = createFake(run, options);
  else if (one.kind !== 'pure') {
    const key = String(variables.get('key'));
    run.client = new ConsentClient({ ...options, url: base, key, now: () => run.now() });
  }
  await runSteps(run, one.steps);
  if (one.requests) {
    const requests = await sendJson('GET', `${servers.stub}/requests/${id}`);
    const expected = substitute(one.requests, variables) as RequestsExpectation;
    checkRequests(requests as readonly Recorded[], expected);
  }
  if (!one.fake) return;
  const fakeRun = createRun(createVariables(one, servers, base));
  fakeRun.client = createFake(fakeRun);
  await runSteps(fakeRun, one.steps);
}
