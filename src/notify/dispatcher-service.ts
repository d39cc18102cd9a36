import type { Database } from '../db/engine.ts';
import { createGroup } from '../db/group-commit.ts';
import { HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { every } from '../lib/jobs.ts';
import { type DeliveryDeps, type DeliveryOutcome, deliver } from './delivery-service.ts';
import { staffLanesOf } from './notify-service.ts';
import {
  type Attempt,
  type Due,
  delivered,
  dueLanes,
  failOverdue,
  isStaffLane,
  type Lane,
  MAIL_LANE,
  recordAttempts,
  takeDue,
} from './outbox-store.ts';

/** Delivers waiting events of the outbox, with back-off, on any number of nodes. No target delays another. */

export interface Dispatcher {
  /** Takes no further events, and ends when those that are under way are delivered or have failed. */
  stop(): Promise<void>;
}

/**
 * Pauses before the 2nd, 3rd … attempt. After the last one the event has failed and waits for `gpd webhooks
 * replay`.
 */
const BACKOFF_MS = [5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];
/** A mail relay may be unreachable for two days. */
const MAIL_BACKOFF_MS = [...BACKOFF_MS, 12 * HOUR, 24 * HOUR];
const isMailLane = (lane: Lane): boolean => lane.webhook === MAIL_LANE || isStaffLane(lane);
const waitsOf = (lane: Lane): readonly number[] => (isMailLane(lane) ? MAIL_BACKOFF_MS : BACKOFF_MS);
/** A delivery fails after the sum of all pauses if its target is still silent. */
const overdueMs = (lane: Lane): number => waitsOf(lane).reduce((sum, ms) => sum + ms);

const MAX_IN_FLIGHT = 20;
const MAX_MAILS_IN_FLIGHT = 4;
/** Further notices wait for the next mail. */
const MAX_NOTICES_IN_MAIL = 500;
/** After this many deliveries in a row without an answer, the target is only probed. */
const MAX_SILENT = 5;
const PROBE_EVERY_MS = 30 * SECOND;

interface Target {
  readonly inFlight: number;
  /** Deliveries in a row without an answer in time or without a connection. */
  readonly silent: number;
  readonly probeAt: number;
}

function toAttempt(due: Due, { failure, final }: DeliveryOutcome, now: number): Attempt {
  if (failure === null) return delivered(due, now);
  const wait = final ? undefined : waitsOf(due)[due.attempts - 1];
  const state = wait === undefined ? 'failed' : 'waiting';
  return { seq: due.seq, state, nextAt: wait === undefined ? 0 : now + wait, failure };
}

/** Records the results of deliveries, in one statement for all that ended meanwhile. */
const createRecorder = (database: Database) =>
  createGroup<Attempt, unknown>({
    name: 'webhooks',
    run: async (attempts) => {
      await recordAttempts(database, attempts);
      return attempts;
    },
    maxBatch: 400,
    maxWaiting: 10_000,
  });

const idOf = ({ kid, webhook }: Lane): string => `${kid} ${webhook}`;

/** Groups rows into deliveries: one mail for all notices to one staff member, otherwise one per row. */
function groupRows(dueRows: readonly Due[]): readonly (readonly [Due, ...Due[]])[] {
  const groups = new Map<string, [Due, ...Due[]]>();
  // Oldest first: a mail lists notices in this order, and its Message-ID contains the first and the last.
  for (const due of [...dueRows].sort((one, other) => Number(one.seq) - Number(other.seq))) {
    const key = isStaffLane(due) ? idOf(due) : String(due.seq);
    const group = groups.get(key);
    if (group) group.push(due);
    else groups.set(key, [due]);
  }
  return [...groups.values()];
}

/** Tracks the target of each lane: its failures, and the number of rows that may still be sent to it. */
function createTargets() {
  const targets = new Map<string, Target>();
  const targetOf = (lane: Lane): Target => targets.get(idOf(lane)) ?? { inFlight: 0, silent: 0, probeAt: 0 };
  /** True: the circuit breaker of the target is open. */
  const isOpen = (lane: Lane): boolean => targetOf(lane).silent >= MAX_SILENT;
  return {
    isOpen,
    isHalfFree: (lane: Lane): boolean => targetOf(lane).inFlight <= MAX_IN_FLIGHT / 2,
    /** The number of further rows that may be taken. */
    limitOf(lane: Lane, now: number): number {
      const { inFlight, probeAt } = targetOf(lane);
      const max = isStaffLane(lane) ? 1 : isMailLane(lane) ? MAX_MAILS_IN_FLIGHT : MAX_IN_FLIGHT;
      const free = isOpen(lane) ? Number(inFlight === 0 && now >= probeAt) : max - inFlight;
      return isStaffLane(lane) ? free * MAX_NOTICES_IN_MAIL : free;
    },
    noteStart(lane: Lane): void {
      const target = targetOf(lane);
      targets.set(idOf(lane), { ...target, inFlight: target.inFlight + 1 });
    },
    /** @param answered null: the target was never called */
    noteEnd(lane: Lane, answered: boolean | null, now: number): void {
      const target = { ...targetOf(lane), inFlight: targetOf(lane).inFlight - 1 };
      const silent = answered === null ? target.silent : answered ? 0 : target.silent + 1;
      const probeAt = answered === false ? now + PROBE_EVERY_MS : target.probeAt;
      if (target.inFlight === 0 && silent === 0) targets.delete(idOf(lane));
      else targets.set(idOf(lane), { ...target, silent, probeAt });
    },
  };
}

/** Runs deliveries lane by lane: it takes the next events of a lane while others still wait for an answer. */
function createDeliveryLanes(deps: DeliveryDeps, lookAgain: () => void) {
  const { database, clock } = deps;
  const targets = createTargets();
  const running = new Set<Promise<void>>();
  /** A database error after a delivery: the next round reports it. */
  let trouble: { readonly error: unknown } | null = null;
  const recorder = createRecorder(database);

  async function run(rows: readonly [Due, ...Due[]], wasFull: boolean): Promise<void> {
    const [lane] = rows;
    let answered: boolean | null = null;
    try {
      const outcomes = await deliver(deps, rows);
      answered = outcomes.find((outcome) => outcome.answered !== null)?.answered ?? null;
      const now = clock();
      const attempts = outcomes.map((outcome, i) => toAttempt(rows[i] ?? lane, outcome, now));
      await Promise.all(attempts.map((attempt) => recorder.submit(attempt)));
      if (answered === false && targets.isOpen(lane))
        await failOverdue(database, lane, clock() - overdueMs(lane), 'its target did not answer');
    } catch (error) {
      trouble = { error };
    }
    targets.noteEnd(lane, answered, clock());
    if (wasFull && targets.isHalfFree(lane) && !targets.isOpen(lane)) lookAgain();
  }

  return {
    running,
    async takeAndSend(): Promise<void> {
      const lastTrouble = trouble;
      trouble = null;
      if (lastTrouble) throw lastTrouble.error;
      const now = clock();
      const lanes = (await dueLanes(database, now, deps.mail && staffLanesOf(deps.tenants.all())))
        .map((lane) => ({ ...lane, limit: targets.limitOf(lane, now) }))
        .filter(({ limit }) => limit > 0);
      if (lanes.length === 0) return;
      const dueRows = await takeDue(database, now, lanes);
      const counts = new Map<string, number>();
      for (const due of dueRows) counts.set(idOf(due), (counts.get(idOf(due)) ?? 0) + 1);
      const full = new Set(lanes.filter((lane) => counts.get(idOf(lane)) === lane.limit).map(idOf));
      for (const rows of groupRows(dueRows)) {
        const [lane] = rows;
        targets.noteStart(lane);
        const delivery = run(rows, full.has(idOf(lane))).finally(() => running.delete(delivery));
        running.add(delivery);
      }
    },
  };
}

/**
 * Looks once a second while there are webhooks or a relay. The failure of one event affects only that event;
 * one of the database ends the round.
 */
export function startDispatcher(deps: DeliveryDeps, ms: number = SECOND): Dispatcher {
  let stopping = false;
  const lanes = createDeliveryLanes(deps, () => void rounds.runNow().catch(() => {}));
  const round = async (): Promise<void> => {
    if (!stopping && (deps.tenants.hasWebhooks() || deps.mail !== null)) await lanes.takeAndSend();
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
