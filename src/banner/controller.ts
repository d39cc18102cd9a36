import {
  type Context,
  type ControllerDeps,
  createContext,
  hasGpc,
  snapshot,
  tell,
  termsOf,
  time,
  update,
} from './context.ts';
import {
  overtaken,
  planWrites,
  prove,
  refusedSince,
  remember,
  removePending,
  splitPending,
  takeBack,
  type Wants,
  WORD,
} from './plan.ts';
import { hasGrants, isFresh, isRecorded, reconcile } from './reconcile.ts';
import { type Choice, type ConsentRecord, createKey, createPrincipal, type Write } from './record.ts';
import { type Entry, isFailure, type Standing } from './server.ts';
import { askable, choiceOf, createReceipt, emptyReceipt, statusOf, type Terms } from './status.ts';
import type { ChoiceResult, ConsentReceipt } from './types.ts';

/**
 * Keeps the choices, and the order in which they take effect: a refusal here first, a grant in the ledger
 * first.
 */

/** After which a page that stays open tells the server what it could not tell before. */
const RETRY_MS = 30_000;

/** After which a page that stays open asks the ledger again: an answer counts for a day. */
const CHECK_MS = 43_200_000;

/** A receipt says what the ledger said at most this long ago. */
const RECEIPT_MS = 60_000;

const RECORDED: ChoiceResult = { outcome: 'recorded', problem: null };

async function send({ server, record, missing }: Context, write: Write) {
  return server && record ? server.write(record, write) : { problem: missing, transient: false };
}

/** Tells the page that the ledger has this write. */
function tellRecorded(context: Context, { action, purposes }: Write, entries: readonly Entry[]): void {
  const choices = Object.fromEntries(purposes.map((id) => [id, WORD[action]]));
  context.recorded({ seq: Math.max(...entries.map(({ seq }) => seq)), choices, recorded: true });
}

/**
 * Sends earlier choices that the server has not received, in their order.
 * @returns keys of refused ones, which stay for the next page
 */
async function flush(context: Context, kid: string): Promise<ReadonlySet<string>> {
  clearTimeout(context.retry);
  const refused = new Set<string>();
  const queue = [...(context.record?.pending ?? [])];
  // The loop appends the parts of a write that is split.
  for (const write of queue) {
    const answer = await send(context, write);
    if (!isFailure(answer)) {
      update(context, kid, (present) => removePending(prove(present, answer), write));
      tellRecorded(context, write, answer);
    }
    // It was recorded by an earlier try, and its person was erased since.
    else if (answer.problem === 'erased') update(context, kid, (present) => removePending(present, write));
    else if (!answer.transient) {
      refused.add(write.key);
      if (answer.problem !== 'unknown-purpose' || write.purposes.length === 1) continue;
      // The tenant has removed one of them, so each is sent alone.
      const parts = write.purposes.map((id) => ({ ...write, purposes: [id], key: createKey() }));
      update(context, kid, (present) => splitPending(present, write, parts));
      queue.push(...parts);
    } else {
      context.retry = setTimeout(() => void serialise(context, () => flush(context, kid)), RETRY_MS);
      break;
    }
  }
  return refused;
}

/** In force before the server knows: the next page sends what this one could not. */
async function refuse(context: Context, terms: Terms, write: Write): Promise<ChoiceResult> {
  const { kid } = terms.config;
  update(context, kid, (present) => {
    const remembered = remember(present, write, terms);
    return { ...remembered, pending: [...remembered.pending, write] };
  });
  const refused = await flush(context, kid);
  const proven = write.purposes.every((id) => choiceOf(context.record, id)?.proof);
  return proven ? RECORDED : { outcome: 'kept', problem: refused.has(write.key) ? 'refused' : 'unreachable' };
}

/** Nothing is granted before the ledger says so. */
async function grant(context: Context, terms: Terms, write: Write): Promise<ChoiceResult> {
  const { kid } = terms.config;
  const refusedKeys = await flush(context, kid);
  if (context.record?.pending.some(({ key }) => !refusedKeys.has(key)))
    return { outcome: 'failed', problem: 'unreachable' };
  const before = context.store.load(kid);
  const answer = await send(context, write);
  if (isFailure(answer)) return { outcome: 'failed', problem: answer.problem };
  const present = context.store.load(kid);
  const refused = refusedSince(before, present, write.purposes);
  const granted = { ...write, purposes: write.purposes.filter((id) => !refused.includes(id)) };
  update(context, kid, (now) => remember(now, granted, { ...terms, now: time(context) }, answer));
  tellRecorded(context, write, answer);
  checkAgain(context, kid, CHECK_MS);
  if (refused.length === 0) return RECORDED;
  const purposes = overtaken(present, answer).filter((id) => refused.includes(id));
  const { overGpc: _over, definitions: _shown, ...plainWrite } = write;
  const back = { ...plainWrite, action: 'withdraw', purposes, key: createKey() } as const;
  if (purposes.length > 0) await refuse(context, terms, back);
  return { outcome: 'failed', problem: 'refused' };
}

async function choose(context: Context, wants: Wants): Promise<ChoiceResult> {
  const terms = termsOf(context);
  if (!terms) return { outcome: 'failed', problem: context.problem ?? 'loading' };
  const writes = planWrites(terms, wants, createKey);
  if (writes.length === 0) return RECORDED;
  // Made by the first choice, and kept with it.
  context.record = context.store.load(terms.config.kid) ??
    context.record ?? { ...(await createPrincipal()), choices: {}, pending: [] };
  let result = RECORDED;
  for (const write of writes) {
    const done = await (write.action === 'grant'
      ? grant(context, terms, write)
      : refuse(context, terms, write));
    if (done.outcome !== 'recorded') result = done;
  }
  // A write under the signal opts out of every purpose that heeds it, including purposes granted before.
  await reportSignal(context);
  return result;
}

/** In force before anybody could be asked; the next page that can tells the ledger. */
function takeBackUnasked(context: Context, ids: readonly string[] | null): ChoiceResult {
  const { store, problem } = context;
  const failed: ChoiceResult = { outcome: 'failed', problem: problem ?? 'loading' };
  const kid = store.only();
  const record = kid === null ? null : store.load(kid);
  const done = record && takeBack(record, ids, { now: time(context), gpc: hasGpc(context), createKey });
  if (kid === null || !done) return failed;
  store.save(kid, done.record);
  return { outcome: 'kept', problem: failed.problem };
}

/** Null: all that is granted. */
async function withdraw(context: Context, ids: readonly string[] | null): Promise<ChoiceResult> {
  const terms = termsOf(context);
  if (!terms) return takeBackUnasked(context, ids);
  // A grant that the signal overrules would come back with its end.
  const live = terms.config.purposes
    .filter((purpose) => ['granted', 'gpc-opt-out'].includes(statusOf(terms, purpose)))
    .filter(({ id }) => ids === null || ids.includes(id));
  return choose(context, new Map(live.map(({ id }) => [id, false])));
}

/** A grant that this browser's signal has overruled since is reported to the ledger as that signal. */
async function reportSignal(context: Context): Promise<void> {
  const terms = termsOf(context);
  if (!terms?.gpc) return;
  const { kid, purposes, policy } = terms.config;
  const overruled = purposes
    .filter((purpose) => statusOf(terms, purpose) === 'gpc-opt-out')
    .filter(({ id }) => choiceOf(context.record, id)?.choice === 'granted')
    .map(({ id }) => id);
  if (overruled.length === 0) return;
  const write = { purposes: overruled, policyVersion: policy.version, gpc: true, key: createKey() };
  if (isFailure(await send(context, { action: 'deny', ...write }))) return;
  forget(context, kid, (id) => overruled.includes(id));
}

function forget(context: Context, kid: string, goes: (id: string, choice: Choice) => boolean): void {
  update(context, kid, (present) => {
    const remaining = Object.entries(present.choices).filter(([id, choice]) => !goes(id, choice));
    return { ...present, choices: Object.fromEntries(remaining) };
  });
}

/** Removes grants that a machine gave: nothing is granted in this browser until the person answers. */
async function askAgain(context: Context): Promise<void> {
  const kid = context.config?.kid;
  if (kid !== undefined) forget(context, kid, (_id, { choice }) => choice === 'granted');
}

/** One after the other: two presses are two choices, in their order. */
function serialise<T>(context: Context, work: () => Promise<T>): Promise<T> {
  const done = context.queue.then(work);
  context.queue = done.catch(() => {});
  return done;
}

function settle(
  context: Context,
  sentRecord: ConsentRecord,
  kid: string,
  standings: readonly Standing[],
): void {
  const present = context.store.load(kid);
  // Another page may have a new principal by now.
  if (present?.principalId !== sentRecord.principalId) return;
  const reconciled = reconcile(present, sentRecord, standings);
  if (reconciled) context.store.save(kid, { ...reconciled, confirmedAt: time(context) });
  // The next choice is a new principal's.
  else context.store.remove(kid);
}

async function askLedger(context: Context, kid: string): Promise<void> {
  const { server, store } = context;
  const record = store.load(kid);
  context.record = record;
  if (!server || !record || !hasGrants(record)) return;
  const answer = await server.state(record);
  if (!isFailure(answer)) settle(context, record, kid, answer);
  // Many pages behind one address share its limit: each failure doubles the wait.
  context.failures = isFailure(answer) ? context.failures + 1 : 0;
  const mayRetry = isFailure(answer) && answer.transient;
  checkAgain(context, kid, mayRetry ? Math.min(RETRY_MS * 2 ** (context.failures - 1), CHECK_MS) : CHECK_MS);
}

function checkAgain(context: Context, kid: string, ms: number): void {
  clearTimeout(context.recheck);
  context.recheck = setTimeout(() => void check(context, kid), ms);
}

/** A grant that was erased, withdrawn or overruled elsewhere ends here. Until the answer, no gated script starts. */
function check(context: Context, kid: string): Promise<void> {
  context.checking ??= askLedger(context, kid).finally(() => {
    context.checking = null;
    if (context.config) read(context, kid);
    context.checked();
  });
  return context.checking;
}

async function load(context: Context): Promise<void> {
  const { server, store } = context;
  const answer = server
    ? await server.config(context.language)
    : { problem: context.missing, transient: false };
  if (isFailure(answer)) {
    context.problem = answer.problem;
    tell(context);
    return;
  }
  const { kid } = answer;
  await check(context, kid);
  if (!context.config)
    store.watch(
      kid,
      () => read(context, kid),
      () => void check(context, kid),
    );
  context.config = answer;
  context.problem = null;
  read(context, kid);
  void serialise(context, async () => {
    await flush(context, kid);
    await reportSignal(context);
  });
}

/** Before it is asked: what cannot be remembered is not asked. @returns the purposes that may be */
function startAsking(context: Context): readonly string[] {
  const terms = termsOf(context);
  const ids = terms ? askable(terms).map(({ id }) => id) : [];
  if (!terms || ids.length === 0) return [];
  const now = Object.fromEntries(ids.map((id) => [id, terms.now]));
  return context.store.saveAsked(terms.config.kid, { ...terms.askedAt, ...now }) ? ids : [];
}

function read(context: Context, kid: string): void {
  context.record = context.store.load(kid);
  tell(context);
}

async function receipt(context: Context): Promise<ConsentReceipt> {
  const { config, record } = context;
  if (config && record && !isFresh(record, time(context), RECEIPT_MS)) await check(context, config.kid);
  for (;;) {
    await context.checking;
    const { phase, granted: live } = snapshot(context);
    if (phase === 'unavailable') return emptyReceipt(hasGpc(context), time(context));
    const terms = termsOf(context);
    if (terms && (phase === 'decided' || live.length > 0)) return createReceipt(terms);
    await new Promise<void>((wake) => context.waiting.push(wake));
  }
}

export type Controller = ReturnType<typeof createController>;

export function createController(deps: ControllerDeps) {
  const context = createContext(deps);
  return {
    load: () => load(context),
    snapshot: () => snapshot(context),
    /** Every choice in this browser is in the ledger. */
    isRecorded: () => isRecorded(context.record),
    /** No gated script starts while the ledger is asked, so the set is empty then. */
    startable: () => new Set(context.checking ? [] : snapshot(context).granted),
    /**
     * The terms at this moment: a choice gets its entry, and expires, while the page stays. Null: unknown,
     * nothing to show.
     */
    terms: () => termsOf(context),
    choose: (wants: Wants) => serialise(context, () => choose(context, wants)),
    withdraw: (ids: readonly string[] | null) => serialise(context, () => withdraw(context, ids)),
    askAgain: () => serialise(context, () => askAgain(context)),
    receipt: () => receipt(context),
    startAsking: () => startAsking(context),
  };
}
