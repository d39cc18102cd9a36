import { inspect } from 'node:util';
import type { Call, Outcome } from '../../../conformance/run-case.mjs';
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
import type { Servers } from './servers.ts';

/** Makes the calls of a case. sdk/conformance/run-case.mjs names them and judges their outcomes. */

type Args = Readonly<Record<string, unknown>>;

interface Run {
  client: Consent | null;
  /** Milliseconds since the epoch, for the next call. */
  now: () => number;
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
  cookieFor: (run, { principalId }) => fakeOf(run).cookieFor(String(principalId)),
  fake: (run, options) => {
    const fake = new FakeConsent({ ...options, now: () => run.now() });
    fake.setGpcPolicy('support', 'ignore');
    fake.setGpcPolicy('offers', 'ask');
    run.client = fake;
  },
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

const errorsOf = (result: unknown): unknown[] =>
  [result].flat().flatMap((one) => (one as { error?: unknown } | null)?.error ?? []);

const print = (error: unknown): string =>
  [String(error), inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error)].join('\n');

function failureOf(error: unknown): Outcome {
  if (error instanceof ConsentError) {
    const { kind, code, status, requestId, retryAfterSeconds, detail } = error;
    return { error: { kind, code, status, requestId, retryAfterSeconds, detail } };
  }
  return error instanceof Error && error.name === 'AbortError'
    ? { cancelled: true }
    : { problem: inspect(error) };
}

async function perform(run: Run, { call, args, options, now, laterSeconds = 0, cancelWhen }: Call) {
  const make = CALLS[call];
  if (!make) throw new Error(`there is no call ${call}`);
  const controller = new AbortController();
  run.now = () => (now === undefined ? Date.now() + laterSeconds * 1000 : now * 1000);
  if (cancelWhen !== undefined) void fetch(cancelWhen).then(() => controller.abort());
  const startedAt = performance.now();
  const elapsed = (): number => performance.now() - startedAt;
  return Promise.resolve()
    .then(() => make(run, args, { ...options, signal: controller.signal }))
    .then(
      (result): Outcome => ({
        result,
        printed: errorsOf(result).map(print).join('\n'),
        elapsedMs: elapsed(),
      }),
      (error: unknown): Outcome => ({ ...failureOf(error), printed: print(error), elapsedMs: elapsed() }),
    );
}

type Next = Call & { readonly run: string; readonly done?: boolean; readonly problem?: string };

/** @throws {Error} that describes the problem */
export async function runCase(name: string, { runs }: Servers): Promise<void> {
  const run: Run = { client: null, now: Date.now };
  const post = async (to: string, outcome: Outcome): Promise<Next> => {
    const response = await fetch(`${runs}/${to}`, { method: 'POST', body: JSON.stringify(outcome) });
    return (await response.json()) as Next;
  };
  let next = await post(name, {});
  while (!next.done) next = await post(next.run, await perform(run, next));
  await run.client?.close();
  if (next.problem !== undefined) throw new Error(next.problem);
}
