import type { Config } from './config.ts';
import {
  overtaken,
  planWrites,
  prove,
  refusedSince,
  remember,
  settle,
  takeBack,
  type Wants,
} from './plan.ts';
import { makeKey, makePrincipal } from './principal.ts';
import { emptyReceipt, makeReceipt } from './receipt.ts';
import type { ConsentRecord, Store, Write } from './record.ts';
import { isFailure, type Server } from './server.ts';
import { choiceOf, snapshotOf, statusOf, type Terms } from './status.ts';
import type { ChoiceResult, ConsentReceipt, ConsentSnapshot } from './types.ts';

/** What is known, what is granted, and the order in which a choice takes force: a refusal here first, a grant there. */

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
}

const MAX_TIMER_MS = 2 ** 31 - 1;
/** After which a page that stays open tells the server what it could not tell before. */
const RETRY_MS = 30_000;

const RECORDED: ChoiceResult = { outcome: 'recorded', problem: null };

export function makeController(deps: ControllerDeps) {
  const { server, store } = deps;
  let config: Config | null = null;
  let record: ConsentRecord | null = null;
  let problem: string | null = null;
  let told = '';
  let waiting: (() => void)[] = [];
  let alarm: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  /** The ledger's time: a choice ends here when it ends there, whatever this device's clock says. */
  const now = (): number => deps.now() - (server?.aheadMs() ?? 0);
  const hasGpc = (): boolean => deps.gpc() || config?.gpc === true;
  const terms = (): Terms | null => config && { config, record, gpc: hasGpc(), now: now() };

  const snapshot = (): ConsentSnapshot => snapshotOf(terms(), problem, hasGpc());

  /** A choice may end while its page stays open; a timer holds 31 bits of milliseconds. */
  function watchTheClock({ purposes }: ConsentSnapshot): void {
    clearTimeout(alarm);
    const ends = purposes.map(({ until }) => until ?? 0).filter((until) => until > now());
    if (ends.length > 0) alarm = setTimeout(tell, Math.min(Math.min(...ends) - now(), MAX_TIMER_MS));
  }

  function tell(): void {
    const state = snapshot();
    watchTheClock(state);
    const text = JSON.stringify(state);
    if (text === told) return;
    told = text;
    deps.changed(state);
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  }

  /** On top of what another tab may have written in the meantime; choices that it removed do not come back. */
  function update(kid: string, change: (present: ConsentRecord) => ConsentRecord): void {
    const present = store.load(kid) ?? (record && { ...record, choices: {} });
    if (!present) return;
    record = change(present);
    store.save(kid, record);
    tell();
  }

  /** Sends one write; what will never be taken is not kept to be sent again. */
  async function send(kid: string, write: Write) {
    if (!server || !record) return { problem: deps.missing, transient: false };
    const answer = await server.write(record, write);
    if (!isFailure(answer)) return answer;
    if (!answer.transient) update(kid, (present) => settle(present, write));
    return answer;
  }

  /** What an earlier page or an absent network left unsaid, in its order. */
  async function flush(kid: string): Promise<void> {
    clearTimeout(retry);
    for (const write of record?.pending ?? []) {
      const answer = await send(kid, write);
      if (!isFailure(answer)) update(kid, (present) => settle(prove(present, answer), write));
      else if (answer.transient) {
        retry = setTimeout(() => void inTurn(() => flush(kid)), RETRY_MS);
        return;
      }
    }
  }

  /** In force before the server knows: the next page sends what this one could not. */
  async function refuse(known: Terms, write: Write): Promise<ChoiceResult> {
    const { kid } = known.config;
    update(kid, (present) => {
      const kept = remember(present, write, known);
      return { ...kept, pending: [...kept.pending, write] };
    });
    await flush(kid);
    const open = record?.pending.some(({ key }) => key === write.key) === true;
    const proven = write.purposes.every((id) => choiceOf(record, id)?.proof);
    return proven ? RECORDED : { outcome: 'kept', problem: open ? 'unreachable' : 'refused' };
  }

  /** Nothing is granted before the ledger says so. */
  async function grant(known: Terms, write: Write): Promise<ChoiceResult> {
    const { kid } = known.config;
    await flush(kid);
    if (record?.pending.length) return { outcome: 'failed', problem: 'unreachable' };
    const before = store.load(kid);
    const answer = await send(kid, write);
    if (isFailure(answer)) return { outcome: 'failed', problem: answer.problem };
    const present = store.load(kid);
    const refused = refusedSince(before, present, write.purposes);
    const granted = { ...write, purposes: write.purposes.filter((id) => !refused.includes(id)) };
    update(kid, (kept) => remember(kept, granted, { ...known, now: now() }, answer));
    if (refused.length === 0) return RECORDED;
    const purposes = overtaken(present, answer).filter((id) => refused.includes(id));
    if (purposes.length > 0) await refuse(known, { ...write, action: 'withdraw', purposes, key: makeKey() });
    return { outcome: 'failed', problem: 'refused' };
  }

  async function choose(wants: Wants): Promise<ChoiceResult> {
    const known = terms();
    if (!known) return { outcome: 'failed', problem: problem ?? 'loading' };
    const writes = planWrites(known, wants, makeKey);
    if (writes.length === 0) return RECORDED;
    // Made by the first choice, and kept with it.
    record = store.load(known.config.kid) ??
      record ?? { ...(await makePrincipal()), choices: {}, pending: [] };
    let result = RECORDED;
    for (const write of writes) {
      const done = await (write.action === 'grant' ? grant(known, write) : refuse(known, write));
      if (done.outcome !== 'recorded') result = done;
    }
    return result;
  }

  /** In force before anybody could be asked; the next page that can tells the ledger. */
  function takeBackUnasked(ids: readonly string[] | null): ChoiceResult {
    const failed: ChoiceResult = { outcome: 'failed', problem: problem ?? 'loading' };
    const kid = store.only();
    const kept = kid === null ? null : store.load(kid);
    const done = kept && takeBack(kept, ids, { now: now(), gpc: hasGpc(), makeKey });
    if (kid === null || !done) return failed;
    store.save(kid, done.record);
    return { outcome: 'kept', problem: failed.problem };
  }

  /** Null: all that is granted. */
  async function withdraw(ids: readonly string[] | null): Promise<ChoiceResult> {
    const known = terms();
    if (!known) return takeBackUnasked(ids);
    // A grant that the signal overrules would come back with its end.
    const live = known.config.purposes
      .filter((purpose) => ['granted', 'gpc-opt-out'].includes(statusOf(known, purpose)))
      .filter(({ id }) => ids === null || ids.includes(id));
    return choose(new Map(live.map(({ id }) => [id, false])));
  }

  /** A grant that this browser's signal has overruled since is told to the ledger as the signal it is. */
  async function reportSignal(known: Terms): Promise<void> {
    const { kid, purposes, policy } = known.config;
    const overruled = purposes
      .filter((purpose) => statusOf(known, purpose) === 'gpc-opt-out')
      .filter(({ id }) => choiceOf(record, id)?.choice === 'granted')
      .map(({ id }) => id);
    if (overruled.length === 0) return;
    const write = { purposes: overruled, policyVersion: policy.version, gpc: true, key: makeKey() };
    if (isFailure(await send(kid, { action: 'deny', ...write }))) return;
    update(kid, (present) => {
      const left = Object.entries(present.choices).filter(([id]) => !overruled.includes(id));
      return { ...present, choices: Object.fromEntries(left) };
    });
  }

  /** One after the other: two presses are two choices, in their order. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = queue.then(work);
    queue = done.catch(() => {});
    return done;
  }

  async function load(): Promise<void> {
    const answer = server ? await server.config(deps.language) : { problem: deps.missing, transient: false };
    if (isFailure(answer)) {
      ({ problem } = answer);
      tell();
      return;
    }
    const { kid } = answer;
    if (!config) store.watch(kid, () => read(kid));
    config = answer;
    problem = null;
    read(kid);
    void inTurn(async () => {
      await flush(kid);
      const known = terms();
      if (known?.gpc) await reportSignal(known);
    });
  }

  function read(kid: string): void {
    record = store.load(kid);
    tell();
  }

  return {
    load,
    snapshot,
    terms,
    choose: (wants: Wants) => inTurn(() => choose(wants)),
    withdraw: (ids: readonly string[] | null) => inTurn(() => withdraw(ids)),
    async receipt(): Promise<ConsentReceipt> {
      for (;;) {
        const { phase, granted: live } = snapshot();
        if (phase === 'unavailable') return emptyReceipt(hasGpc(), now());
        const known = terms();
        if (known && (phase === 'decided' || live.length > 0)) return makeReceipt(known);
        await new Promise<void>((wake) => waiting.push(wake));
      }
    },
  };
}
