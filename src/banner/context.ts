import { toJson } from '../browser/encoding.ts';
import type { Config } from './config.ts';
import type { ConsentRecord, Store } from './record.ts';
import { type Server, TOLERATED_MS } from './server.ts';
import { snapshotOf, type Terms } from './status.ts';
import type { ConsentSnapshot, RecordedChoices } from './types.ts';

/** The state of the controller, and the listeners that are called when it changes. */

export interface ControllerDeps {
  /** Null where nobody can be asked; `missing` says what for. */
  readonly server: Server | null;
  readonly missing: string;
  readonly store: Store;
  readonly language: string;
  /** The browser's own signal. */
  readonly gpc: () => boolean;
  readonly now: () => number;
  /** Called whenever the snapshot is another one. */
  readonly changed: (snapshot: ConsentSnapshot) => void;
  /** Called whenever the ledger has a choice. */
  readonly recorded: (choices: RecordedChoices) => void;
  /** Called when the ledger has answered for the grants, or did not in time. */
  readonly checked: () => void;
}

const MAX_TIMER_MS = 2 ** 31 - 1;
type Timer = ReturnType<typeof setTimeout>;

/** The dependencies with the changing state; each operation of the controller takes it. */
export const createContext = (deps: ControllerDeps) => ({
  ...deps,
  config: null as Config | null,
  record: null as ConsentRecord | null,
  problem: null as string | null,
  told: '',
  waiting: [] as (() => void)[],
  /** The question to the ledger that is on its way. */
  checking: null as Promise<void> | null,
  alarm: undefined as Timer | undefined,
  recheck: undefined as Timer | undefined,
  /** Failures of the ledger to answer, one after the other. */
  failures: 0,
  retry: undefined as Timer | undefined,
  queue: Promise.resolve() as Promise<unknown>,
});
export type Context = ReturnType<typeof createContext>;

/** The ledger's time: a choice ends here when it ends there, whatever this device's clock says. */
export function time({ now, server, record }: Context): number {
  const serverTime = now() - (server?.aheadMs() ?? 0);
  const proven = Object.values(record?.choices ?? {}).filter(({ proof }) => proof);
  // A time earlier than a stored ledger entry was cached on its way: then this device's clock is the best
  // one.
  return proven.some(({ at }) => at > serverTime + TOLERATED_MS) ? now() : serverTime;
}
export const hasGpc = (context: Context): boolean => context.gpc() || context.config?.gpc === true;

export function termsOf(context: Context): Terms | null {
  const { config, record } = context;
  if (!config) return null;
  const askedAt = context.store.asked(config.kid);
  return { config, record, gpc: hasGpc(context), now: time(context), askedAt };
}

export const snapshot = (context: Context): ConsentSnapshot =>
  snapshotOf(termsOf(context), context.problem, hasGpc(context));

/** A choice may end while its page stays open; a timer holds 31 bits of milliseconds. */
function watchTheClock(context: Context, { purposes }: ConsentSnapshot): void {
  clearTimeout(context.alarm);
  const now = time(context);
  const ends = purposes.map(({ until }) => until ?? 0).filter((until) => until > now);
  if (ends.length > 0)
    context.alarm = setTimeout(() => tell(context), Math.min(Math.min(...ends) - now, MAX_TIMER_MS));
}

export function tell(context: Context): void {
  const state = snapshot(context);
  watchTheClock(context, state);
  const text = toJson(state);
  if (text === context.told) return;
  context.told = text;
  context.changed(state);
  const woken = context.waiting;
  context.waiting = [];
  for (const wake of woken) wake();
}

/** On top of what another tab may have written in the meantime; choices that it removed do not come back. */
export function update(context: Context, kid: string, change: (present: ConsentRecord) => ConsentRecord) {
  const present = context.store.load(kid) ?? (context.record && { ...context.record, choices: {} });
  if (!present) return;
  context.record = change(present);
  context.store.save(kid, context.record);
  tell(context);
}
