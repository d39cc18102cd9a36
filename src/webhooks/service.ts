import type { Database } from '../db/db.ts';
import { makeGroup } from '../db/group-commit.ts';
import { postWebhook } from '../egress/send.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { outboxContext, webhookSecretContext } from '../keys/master-key.ts';
import { type Clock, HOUR, isoTime, MINUTE, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';
import { every } from '../lib/jobs.ts';
import type { Webhook } from '../tenants/tenant-store.ts';
import { afterDelivery, freeSlots, isHalfFree, isOpen, type TargetState, UNTRIED } from './breaker.ts';
import { MAIL_LANE, type MailPayload } from './mail.ts';
import { webhookHeaders } from './signature.ts';
import {
  type Attempt,
  type Due,
  dueLanes,
  failOverdue,
  type Lane,
  recordAttempts,
  takeDue,
} from './store.ts';

/** Delivers what waits in the outbox, with back-off, on any number of nodes; no target holds up the others (ADR 0037). */

/** Waits before the 2nd, 3rd … attempt; after the last one the event has failed and waits for `gpd webhooks replay`. */
const BACKOFF_MS = [5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];
/** A relay may be away for two days. */
const MAIL_BACKOFF_MS = [...BACKOFF_MS, 12 * HOUR, 24 * HOUR];
const MAX_MAILS_IN_FLIGHT = 4;
const waitsOf = ({ webhook }: Lane): readonly number[] =>
  webhook === MAIL_LANE ? MAIL_BACKOFF_MS : BACKOFF_MS;
/** What has been due for as long as all waits together fails when its target is silent still. */
const overdueMs = (lane: Lane): number => waitsOf(lane).reduce((sum, ms) => sum + ms);

export interface DispatcherDeps {
  readonly database: Database;
  readonly masterKey: () => MasterKey;
  readonly clock: Clock;
  readonly webhook: (kid: string, id: string) => Webhook | undefined;
  /** What encrypts payloads of a tenant. */
  readonly wrapperOf: (kid: string) => MasterKey | undefined;
  /** The decision as `GET /v1/decisions/{requestId}` tells it; null once it was erased. */
  readonly findDecision: (kid: string, requestId: string) => Promise<object | null>;
  /** Sends a mail; false: the notice no longer applies. Null: no relay is configured. */
  readonly mail: ((due: Due, payload: MailPayload) => Promise<boolean>) | null;
  readonly onFault: (error: unknown) => void;
}

async function payloadOf(deps: DispatcherDeps, due: Due): Promise<object | null> {
  if (due.request_id !== null) return deps.findDecision(due.kid, due.request_id);
  const wrapper = deps.wrapperOf(due.kid);
  if (due.sealed === null || !wrapper) return null;
  return JSON.parse(wrapper.unwrap(due.sealed, outboxContext(due.kid)).toString()) as object;
}

interface Outcome {
  /** null: it arrived. */
  readonly failure: string | null;
  /** Whether the target answered; null: it was not called. */
  readonly answered: boolean | null;
  /** It cannot arrive any more. */
  readonly final?: true;
}

const whyOf = (error: unknown): string => (error instanceof Error ? error.message : 'it cannot be reached');

const NOTHING_LEFT: Outcome = {
  failure: 'nothing is left to send',
  answered: null,
  final: true,
};

async function sendMail({ mail }: DispatcherDeps, due: Due, payload: object): Promise<Outcome> {
  if (!mail) return { failure: 'no relay is set', answered: null };
  try {
    const sent = await mail(due, payload as MailPayload);
    return sent ? { failure: null, answered: true } : NOTHING_LEFT;
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    return { failure: whyOf(error), answered: false };
  }
}

async function send(deps: DispatcherDeps, due: Due, webhook: Webhook, data: object): Promise<Outcome> {
  const body = JSON.stringify({
    type: due.event,
    timestamp: isoTime(Number(due.created_at)),
    seq: Number(due.seq),
    data,
  });
  const timestamp = Math.floor(deps.clock() / 1000);
  let called = false;
  try {
    const key = deps.masterKey().unwrap(webhook.wrappedSecret, webhookSecretContext(webhook.kid, webhook.id));
    const headers = webhookHeaders(key, `evt_${due.seq}`, timestamp, body);
    called = true;
    const status = await postWebhook(webhook, body, headers);
    return { failure: status >= 200 && status < 300 ? null : `it answered ${status}`, answered: true };
  } catch (error) {
    return { failure: whyOf(error), answered: called ? false : null };
  }
}

/** @throws {Unavailable} when the database cannot be read: the event waits */
async function attempt(deps: DispatcherDeps, due: Due): Promise<Outcome> {
  const webhook = deps.webhook(due.kid, due.webhook);
  const isMail = due.webhook === MAIL_LANE;
  // A removal takes its events along: this node is behind, or cannot read the tenant.
  if (!webhook && !isMail) return { failure: 'the webhook is not known here', answered: null };
  let data: object | null;
  try {
    data = await payloadOf(deps, due);
  } catch (error) {
    if (error instanceof Unavailable) throw error;
    // Its row is damaged, and stays so.
    deps.onFault(error);
    return { failure: 'its stored payload cannot be read', answered: null, final: true };
  }
  // Erased meanwhile.
  if (!data) return NOTHING_LEFT;
  return webhook ? send(deps, due, webhook, data) : sendMail(deps, due, data);
}

function toAttempt(due: Due, { failure, final }: Outcome, now: number): Attempt {
  const wait = final ? undefined : waitsOf(due)[due.attempts - 1];
  const state = failure === null ? 'delivered' : wait === undefined ? 'failed' : 'waiting';
  return { seq: due.seq, state, nextAt: state === 'waiting' ? now + (wait ?? 0) : 0, failure };
}

/** What became of deliveries, a statement for all that ended meanwhile. */
const makeSettled = (database: Database) =>
  makeGroup<Attempt, unknown>({
    name: 'webhooks',
    run: async (attempts) => {
      await recordAttempts(database, attempts);
      return attempts;
    },
    maxBatch: 400,
    maxWaiting: 10_000,
  });

/** What is on its way, lane by lane: the next events of one are taken while others still wait for an answer. */
function makeLanes(deps: DispatcherDeps, lookAgain: () => void) {
  const { database, clock } = deps;
  const targets = new Map<string, TargetState>();
  const running = new Set<Promise<void>>();
  /** What the database answered to a delivery: the next round says it. */
  let trouble: { readonly error: unknown } | null = null;
  const settled = makeSettled(database);
  const idOf = ({ kid, webhook }: Lane): string => `${kid} ${webhook}`;
  const targetOf = (lane: Lane): TargetState => targets.get(idOf(lane)) ?? UNTRIED;

  function ended(lane: Lane, answered: boolean | null): TargetState {
    const target = afterDelivery(targetOf(lane), answered, clock());
    if (target.inFlight === 0 && target.silent === 0) targets.delete(idOf(lane));
    else targets.set(idOf(lane), target);
    return target;
  }

  async function deliver(due: Due, wasFull: boolean): Promise<void> {
    let answered: boolean | null = null;
    try {
      const outcome = await attempt(deps, due);
      answered = outcome.answered;
      await settled.submit(toAttempt(due, outcome, clock()));
      if (answered === false && isOpen(targetOf(due)))
        await failOverdue(database, due, clock() - overdueMs(due), 'its target did not answer');
    } catch (error) {
      trouble = { error };
    }
    const target = ended(due, answered);
    if (wasFull && isHalfFree(target) && !isOpen(target)) lookAgain();
  }

  return {
    running,
    async takeAndSend(): Promise<void> {
      const told = trouble;
      trouble = null;
      if (told) throw told.error;
      const now = clock();
      const lanes = (await dueLanes(database, now, deps.mail !== null))
        .map((lane) => {
          const most = lane.webhook === MAIL_LANE ? MAX_MAILS_IN_FLIGHT : undefined;
          return { ...lane, limit: freeSlots(targetOf(lane), now, most) };
        })
        .filter(({ limit }) => limit > 0);
      if (lanes.length === 0) return;
      const taken = await takeDue(database, now, lanes);
      const counts = new Map<string, number>();
      for (const due of taken) counts.set(idOf(due), (counts.get(idOf(due)) ?? 0) + 1);
      const full = new Set(lanes.filter((lane) => counts.get(idOf(lane)) === lane.limit).map(idOf));
      for (const due of taken) {
        const target = targetOf(due);
        targets.set(idOf(due), { ...target, inFlight: target.inFlight + 1 });
        const delivery = deliver(due, full.has(idOf(due))).finally(() => running.delete(delivery));
        running.add(delivery);
      }
    },
  };
}

/** Looks now and then while there are webhooks. One event's trouble is its own; the database's ends the round. */
export function startDispatcher(deps: DispatcherDeps, active: () => boolean, ms: number = SECOND) {
  let stopping = false;
  const lanes = makeLanes(deps, () => void rounds.soon().catch(() => {}));
  const round = async (): Promise<void> => {
    if (!stopping && active()) await lanes.takeAndSend();
  };
  const rounds = every(round, { ms, timer: setInterval, onFault: deps.onFault });
  return {
    async stop() {
      stopping = true;
      await rounds.stop();
      await Promise.all(lanes.running);
    },
  };
}
