import type { Database } from '../db/db.ts';
import { postWebhook } from '../egress/post-webhook.ts';
import { outboxContext, webhookSecretContext } from '../keys/contexts.ts';
import { type MasterKey, makeMasterKey } from '../keys/master-key.ts';
import { type Clock, HOUR, isoTime, MINUTE, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';
import { every } from '../lib/every.ts';
import type { Random } from '../lib/random.ts';
import { webhookHeaders } from './signature.ts';
import { type Due, settle, takeDue, type Webhook } from './store.ts';

/** Delivers what waits in the outbox, with back-off, on any number of nodes. */

/** Waits before the 2nd, 3rd … attempt; after the last one the event has failed and waits for `gpd webhooks replay`. */
const BACKOFF_MS = [5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];
const BATCH = 50;

export interface DispatcherDeps {
  readonly database: Database;
  readonly masterKey: () => MasterKey;
  readonly clock: Clock;
  readonly webhook: (kid: string, id: string) => Webhook | undefined;
  readonly random: Random;
  /** Key that seals payloads of a tenant. */
  readonly payloadKey: (kid: string) => Uint8Array | undefined;
  /** The decision as `GET /v1/decisions/{requestId}` tells it; null once it was erased. */
  readonly findDecision: (kid: string, requestId: string) => Promise<object | null>;
  readonly onFault: (error: unknown) => void;
}

async function payloadOf(deps: DispatcherDeps, due: Due): Promise<object | null> {
  if (due.request_id !== null) return deps.findDecision(due.kid, due.request_id);
  const key = deps.payloadKey(due.kid);
  if (due.sealed === null || !key) return null;
  const opened = makeMasterKey(key, deps.random).unwrap(due.sealed, outboxContext(due.kid));
  return JSON.parse(opened.toString()) as object;
}

/** @returns null, or why it did not arrive */
async function send(deps: DispatcherDeps, due: Due, webhook: Webhook, data: object): Promise<string | null> {
  const body = JSON.stringify({
    type: due.event,
    timestamp: isoTime(Number(due.created_at)),
    seq: Number(due.seq),
    data,
  });
  const timestamp = Math.floor(deps.clock() / 1000);
  try {
    const key = deps.masterKey().unwrap(webhook.wrappedSecret, webhookSecretContext(webhook.kid, webhook.id));
    const headers = webhookHeaders(key, { id: `evt_${due.seq}`, timestamp, body });
    const status = await postWebhook(webhook, body, headers);
    return status >= 200 && status < 300 ? null : `it answered ${status}`;
  } catch (error) {
    return error instanceof Error ? error.message : 'it cannot be reached';
  }
}

async function giveUp({ database }: DispatcherDeps, due: Due, failure: string): Promise<void> {
  await settle(database, due.seq, { state: 'failed', nextAt: 0, failure });
}

async function retryLater(deps: DispatcherDeps, due: Due, failure: string): Promise<void> {
  const wait = BACKOFF_MS[due.attempts - 1];
  if (wait === undefined) return giveUp(deps, due, failure);
  await settle(deps.database, due.seq, { state: 'waiting', nextAt: deps.clock() + wait, failure });
}

async function deliver(deps: DispatcherDeps, due: Due): Promise<void> {
  const webhook = deps.webhook(due.kid, due.webhook);
  // A removal takes its events along: this node is behind, or cannot read the tenant.
  if (!webhook) return retryLater(deps, due, 'the webhook is not known here');
  let data: object | null;
  try {
    data = await payloadOf(deps, due);
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    // Its row is damaged, and stays so.
    deps.onFault(error);
    return giveUp(deps, due, 'its stored payload cannot be read');
  }
  // Erased meanwhile.
  if (!data) return giveUp(deps, due, 'there is nothing to send any more');
  const failure = await send(deps, due, webhook, data);
  if (failure !== null) return retryLater(deps, due, failure);
  await settle(deps.database, due.seq, { state: 'delivered', nextAt: 0, failure: null });
}

async function deliverDue(deps: DispatcherDeps): Promise<void> {
  for (;;) {
    const due = await takeDue(deps.database, deps.clock(), BATCH);
    const ended = await Promise.allSettled(due.map((entry) => deliver(deps, entry)));
    for (const { reason } of ended.filter((end) => end.status === 'rejected')) throw reason;
    if (due.length < BATCH) return;
  }
}

/** Looks now and then while there are webhooks. One event's trouble is its own; the database's ends the round. */
export function startDispatcher(
  deps: DispatcherDeps,
  active: () => boolean,
  ms: number = SECOND,
): { stop(): Promise<void> } {
  const round = async (): Promise<void> => (active() ? deliverDue(deps) : undefined);
  return every(round, { ms, timer: setInterval, onFault: deps.onFault });
}
