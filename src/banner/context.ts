import { toJson } from '../browser/encoding.ts';
import type { Config } from './config.ts';
import type { ConsentRecord, Store } from './record.ts';
import { type Server, TOLERATED_MS } from './server.ts';
import { snapshotOf, type Terms } from './status.ts';
import type { ConsentSnapshot, RecordedChoices } from './types.ts';

/** The state of the controller, and the listeners that are called when it changes. */

export interface ControllerDeps {
  /** Null if nobody can be asked; `missing` is the reason. */
  readonly server: Server | null;
  readonly missing: string;
  readonly store: Store;
  readonly language: string;
  /** The Global Privacy Control of this browser. */
  readonly gpc: () => boolean;
  readonly now: () => number;
  /** False for a page in a hidden tab. */
  readonly isVisible: () => boolean;
  /** True if the person has refused by the markup of the page's server, before this script was there. */
  readonly isRefusedEarly: () => boolean;
  /** Called when the snapshot has changed. */
  readonly onChange: (snapshot: ConsentSnapshot) => void;
  /** Called when the ledger has recorded a choice. */
  readonly onRecorded: (choices: RecordedChoices) => void;
  /** Called when the ledger has confirmed or ended the grants, or has not answered in time. */
  readonly onChecked: () => void;
}

const MAX_TIMER_MS = 2 ** 31 - 1;
type Timer = ReturnType<typeof setTimeout>;

/** The dependencies and the changing state, which each operation of the controller takes. */
export const createContext = (deps: ControllerDeps) => ({
  ...deps,
  config: null as Config | null,
  record: null as ConsentRecord | null,
  problem: null as string | null,
  snapshot: null as { readonly json: string; readonly value: ConsentSnapshot } | null,
  /** The last snapshot that the page was notified of. */
  lastNotified: null as ConsentSnapshot | null,
  waiters: [] as (() => void)[],
  /** The request for the ledger's answer while it is under way. */
  ongoingCheck: null as Promise<void> | null,
  expiryTimer: undefined as Timer | undefined,
  recheckTimer: undefined as Timer | undefined,
  /** Consecutive requests that the ledger did not answer. */
  failures: 0,
  retryTimer: undefined as Timer | undefined,
  queue: Promise.resolve() as Promise<unknown>,
});
export type Context = ReturnType<typeof createContext>;

/** The ledger's time: a choice expires here when it expires there, even if this device's clock is wrong. */
export function ledgerTime({ now, server, record }: Context): number {
  const serverTime = now() - (server?.aheadMs() ?? 0);
  const proven = Object.values(record?.choices ?? {}).filter(({ proof }) => proof);
  // A server time before a stored entry came from a cache on the way: this device's clock is the better one
  // then.
  return proven.some(({ at }) => at > serverTime + TOLERATED_MS) ? now() : serverTime;
}
export const hasGpc = (context: Context): boolean => context.gpc() || context.config?.gpc === true;

export function termsOf(context: Context): Terms | null {
  const { config, record } = context;
  if (!config) return null;
  const askedAt = context.store.loadAsked(config.kid);
  return { config, record, gpc: hasGpc(context), now: ledgerTime(context), askedAt };
}

/** It stays the same object until something in it changes: frameworks compare snapshots by identity. */
export function currentSnapshot(context: Context): ConsentSnapshot {
  const snapshot = snapshotOf(termsOf(context), context.problem, hasGpc(context));
  const json = toJson(snapshot);
  if (json !== context.snapshot?.json) context.snapshot = { json, value: snapshot };
  return context.snapshot?.value ?? snapshot;
}

/** A choice may expire while its page stays open. A timer holds 31 bits of milliseconds. */
function scheduleExpiry(context: Context, { purposes }: ConsentSnapshot): void {
  clearTimeout(context.expiryTimer);
  const now = ledgerTime(context);
  const ends = purposes.map(({ until }) => until ?? 0).filter((until) => until > now);
  if (ends.length > 0)
    context.expiryTimer = setTimeout(
      () => notifyPage(context),
      Math.min(Math.min(...ends) - now, MAX_TIMER_MS),
    );
}

export function notifyPage(context: Context): void {
  const state = currentSnapshot(context);
  scheduleExpiry(context, state);
  if (state === context.lastNotified) return;
  context.lastNotified = state;
  context.onChange(state);
  const { waiters } = context;
  context.waiters = [];
  for (const wake of waiters) wake();
}

/** Changes the record as another tab may have left it. Choices that the tab removed do not come back. */
export function updateRecord(
  context: Context,
  kid: string,
  change: (record: ConsentRecord) => ConsentRecord,
) {
  const record = context.store.load(kid) ?? (context.record && { ...context.record, choices: {} });
  if (!record) return;
  context.record = change(record);
  context.store.save(kid, context.record);
  notifyPage(context);
}
