import type { Config } from './config.ts';
import {
  type Context,
  type ControllerDeps,
  createContext,
  currentSnapshot,
  hasGpc,
  ledgerTime,
  notifyPage,
  termsOf,
  updateRecord,
} from './context.ts';
import { checkGrants, joinAccount, RETRY_MS, reloadRecord, scheduleCheck } from './ledger.ts';
import {
  addProofs,
  CHOICE_BY_ACTION,
  findOvertaken,
  findRefused,
  planWrites,
  rememberWrite,
  removePending,
  splitPending,
  type Wants,
  withdrawStored,
} from './plan.ts';
import { isFresh, isRecorded } from './reconcile.ts';
import { type Choice, createKey, createPrincipal, type Write } from './record.ts';
import { type Entry, isFailure, type Written } from './server.ts';
import {
  askablePurposes,
  choiceOf,
  createReceipt,
  emptyReceipt,
  purposesWith,
  type Terms,
} from './status.ts';
import type { ChoiceResult, ConsentReceipt } from './types.ts';

/** Applies choices. A refusal takes effect before it is sent, a grant once the ledger has recorded it. */

/** A receipt rests on an answer of the ledger that is at most this old. */
const RECEIPT_MS = 60_000;

const RECORDED: ChoiceResult = { outcome: 'recorded', problem: null };
const failed = (problem: string): ChoiceResult => ({ outcome: 'failed', problem });

async function sendWrite({ server, record, missing }: Context, write: Write) {
  return server && record ? server.write(record, write) : { problem: missing, transient: false };
}

/** Notifies the page that the ledger has this write. */
function notifyRecorded(context: Context, { action, purposes }: Write, entries: readonly Entry[]): void {
  const choices = Object.fromEntries(purposes.map((id) => [id, CHOICE_BY_ACTION[action]]));
  context.onRecorded({ seq: Math.max(...entries.map(({ seq }) => seq)), choices, recorded: true });
}

/** Tells the site's server, unless a refusal is unsent: the state does not have it. */
function saveState({ record, store }: Context, { state }: Written): void {
  if (record?.pending.length === 0) store.saveState(state);
}

/**
 * Sends earlier choices that the server has not received, in their order.
 * @returns keys of the writes that the server refused; the next page sends them again
 */
async function sendPending(context: Context, kid: string): Promise<ReadonlySet<string>> {
  clearTimeout(context.retryTimer);
  const refused = new Set<string>();
  const queue = [...(context.record?.pending ?? [])];
  // The loop itself appends to the queue when it splits a write.
  for (const write of queue) {
    const answer = await sendWrite(context, write);
    if (!isFailure(answer)) {
      updateRecord(context, kid, (record) => removePending(addProofs(record, answer.entries), write));
      saveState(context, answer);
      notifyRecorded(context, write, answer.entries);
    }
    // An earlier attempt recorded the write, and the person was erased since.
    else if (answer.problem === 'erased')
      updateRecord(context, kid, (record) => removePending(record, write));
    else if (!answer.transient) {
      refused.add(write.key);
      if (answer.problem !== 'unknown-purpose' || write.purposes.length === 1) continue;
      // The tenant has removed one of the purposes, so each is sent alone.
      const parts = write.purposes.map((id) => ({ ...write, purposes: [id], key: createKey() }));
      updateRecord(context, kid, (record) => splitPending(record, write, parts));
      queue.push(...parts);
    } else {
      context.retryTimer = setTimeout(
        () => void serialise(context, () => sendPending(context, kid)),
        RETRY_MS,
      );
      break;
    }
  }
  return refused;
}

/** A refusal takes effect before it is sent. If it cannot be sent now, the next page sends it. */
function holdRefusal(context: Context, terms: Terms, write: Write): void {
  updateRecord(context, terms.config.kid, (record) => {
    const changed = rememberWrite(record, write, terms);
    return { ...changed, pending: [...changed.pending, write] };
  });
}

async function sendRefusal(context: Context, terms: Terms, write: Write): Promise<ChoiceResult> {
  const refusedKeys = await sendPending(context, terms.config.kid);
  if (write.purposes.every((id) => choiceOf(context.record, id)?.proof)) return RECORDED;
  return { outcome: 'kept', problem: refusedKeys.has(write.key) ? 'refused' : 'unreachable' };
}

/** A grant takes effect once the ledger has recorded it. */
async function requestGrant(context: Context, terms: Terms, write: Write): Promise<ChoiceResult> {
  const { kid } = terms.config;
  const refusedKeys = await sendPending(context, kid);
  if (context.record?.pending.some(({ key }) => !refusedKeys.has(key))) return failed('unreachable');
  const sentRecord = context.store.load(kid);
  const answer = await sendWrite(context, write);
  if (isFailure(answer)) return failed(answer.problem);
  const storedRecord = context.store.load(kid);
  const refusedIds = findRefused(sentRecord, storedRecord, write.purposes);
  const grantedWrite = { ...write, purposes: write.purposes.filter((id) => !refusedIds.includes(id)) };
  const grantedTerms = { ...terms, now: ledgerTime(context) };
  // Before the page hears of the grant: it may reload at once. A refusal of another tab is newer than this.
  if (refusedIds.length === 0 && !storedRecord?.pending.length) context.store.saveState(answer.state);
  updateRecord(context, kid, (record) => rememberWrite(record, grantedWrite, grantedTerms, answer.entries));
  notifyRecorded(context, write, answer.entries);
  scheduleCheck(context, kid);
  if (refusedIds.length === 0) return RECORDED;
  // Another tab refused meanwhile, so the grant is withdrawn again where the ledger recorded it after that
  // refusal.
  const purposes = findOvertaken(storedRecord, answer.entries).filter((id) => refusedIds.includes(id));
  const { overGpc: _overGpc, definitions: _definitions, ...plainWrite } = write;
  const withdrawal = { ...plainWrite, action: 'withdraw', purposes, key: createKey() } as const;
  if (purposes.length > 0) {
    holdRefusal(context, terms, withdrawal);
    await sendRefusal(context, terms, withdrawal);
  }
  return failed('refused');
}

/**
 * Ends grants at once, also while another choice or a join is under way.
 * @returns what has to be sent in its turn
 */
function endGrants(context: Context, wants: Wants): readonly Write[] {
  const terms = termsOf(context);
  if (!terms) return [];
  const writes = planWrites(terms, wants, createKey).filter(({ action }) => action === 'withdraw');
  for (const write of writes) holdRefusal(context, terms, write);
  return writes;
}

/** @param refusals those that are in force here already */
async function applyWants(context: Context, wants: Wants, refusals: readonly Write[]): Promise<ChoiceResult> {
  const terms = termsOf(context);
  if (!terms) return failed(context.problem ?? 'loading');
  const writes = [...refusals, ...planWrites(terms, wants, createKey)];
  // An earlier refusal may still wait for gpd.
  if (writes.length === 0)
    return context.record?.pending.length ? { outcome: 'kept', problem: 'unreachable' } : RECORDED;
  // The first choice creates the principal.
  context.record = context.store.load(terms.config.kid) ??
    context.record ?? { ...(await createPrincipal()), choices: {}, pending: [] };
  let result = RECORDED;
  for (const write of writes) {
    if (write.action !== 'grant' && !refusals.includes(write)) holdRefusal(context, terms, write);
    const send = write.action === 'grant' ? requestGrant : sendRefusal;
    const writeResult = await send(context, terms, write);
    if (writeResult.outcome !== 'recorded') result = writeResult;
  }
  // A write under GPC opts out of every purpose that honours it, including purposes granted before.
  await reportSignal(context);
  return result;
}

/** Withdraws by the record alone, for a page that has no terms yet. @returns false if nothing is granted */
function withdrawByRecord(context: Context, kid: string, ids: readonly string[] | null): boolean {
  const record = context.store.load(kid);
  const withdrawn =
    record && withdrawStored(record, ids, { now: ledgerTime(context), gpc: hasGpc(context), createKey });
  if (withdrawn) context.store.save(kid, withdrawn);
  return withdrawn !== null;
}

/** Withdraws without the tenant's terms, at once. The next page that reaches the server sends it. */
function withdrawOffline(context: Context, ids: readonly string[] | null): ChoiceResult {
  const { store, problem } = context;
  const reason = problem ?? 'loading';
  const kid = store.findOnlyKid();
  if (kid === null || !withdrawByRecord(context, kid, ids)) return failed(reason);
  return { outcome: 'kept', problem: reason };
}

/** @param ids null for all granted purposes */
function endedBy(context: Context, ids: readonly string[] | null): Wants {
  const terms = termsOf(context);
  // A grant that GPC only overrules would come back when GPC is switched off, so it is withdrawn too.
  const purposes = terms ? purposesWith(terms, 'granted', 'gpc-opt-out') : [];
  return new Map(purposes.filter(({ id }) => ids === null || ids.includes(id)).map(({ id }) => [id, false]));
}

function choose(context: Context, wants: Wants): Promise<ChoiceResult> {
  const refusals = endGrants(context, wants);
  return serialise(context, () => applyWants(context, wants, refusals));
}

function withdraw(context: Context, ids: readonly string[] | null): Promise<ChoiceResult> {
  const refusals = endGrants(context, endedBy(context, ids));
  return serialise(context, async () =>
    termsOf(context) ? applyWants(context, endedBy(context, ids), refusals) : withdrawOffline(context, ids),
  );
}

/** Reports GPC to the ledger for the grants that it now overrules. */
async function reportSignal(context: Context): Promise<void> {
  const terms = termsOf(context);
  if (!terms?.gpc) return;
  const { kid, policy } = terms.config;
  const overruled = purposesWith(terms, 'gpc-opt-out')
    .filter(({ id }) => choiceOf(context.record, id)?.choice === 'granted')
    .map(({ id }) => id);
  if (overruled.length === 0) return;
  const write = { purposes: overruled, policyVersion: policy.version, gpc: true, key: createKey() };
  const answer = await sendWrite(context, { action: 'deny', ...write });
  if (isFailure(answer)) return;
  removeChoices(context, kid, (id) => overruled.includes(id));
  saveState(context, answer);
}

function removeChoices(
  context: Context,
  kid: string,
  isRemoved: (id: string, choice: Choice) => boolean,
): void {
  updateRecord(context, kid, (record) => {
    const remaining = Object.entries(record.choices).filter(([id, choice]) => !isRemoved(id, choice));
    return { ...record, choices: Object.fromEntries(remaining) };
  });
}

/**
 * Called when a machine gave the grants. Removes them, so nothing is granted here until the person answers.
 */
async function askAgain(context: Context): Promise<void> {
  const kid = context.config?.kid;
  if (kid !== undefined) removeChoices(context, kid, (_id, { choice }) => choice === 'granted');
}

/** Runs one choice after the other: two presses are two choices, in their order. */
function serialise<T>(context: Context, work: () => Promise<T>): Promise<T> {
  const result = context.queue.then(work);
  context.queue = result.catch(() => {});
  return result;
}

/** @param inPage the terms that the page's server has written into the page; null to ask gpd */
async function loadConfig(context: Context, inPage: Config | null): Promise<void> {
  const { server, store } = context;
  const answer = server
    ? (inPage ?? (await server.config(context.language)))
    : { problem: context.missing, transient: false };
  if (isFailure(answer)) {
    context.problem = answer.problem;
    notifyPage(context);
    return;
  }
  const { kid } = answer;
  await checkGrants(context, kid);
  const isFirst = !context.config;
  // Before anything that waits for an older yes can start.
  if (isFirst && context.isRefusedEarly()) withdrawByRecord(context, kid, null);
  if (isFirst)
    store.watch(
      kid,
      () => reloadRecord(context, kid),
      () => void checkGrants(context, kid),
    );
  context.config = answer;
  context.problem = null;
  reloadRecord(context, kid);
  void serialise(context, async () => {
    await sendPending(context, kid);
    await reportSignal(context);
  });
}

/**
 * Notes that the settings ask for a yes over GPC. A browser without storage is not asked: it would be asked
 * again on each page.
 * @returns ids of the purposes that may be asked for
 */
function startAsking(context: Context): readonly string[] {
  const terms = termsOf(context);
  const ids = terms ? askablePurposes(terms).map(({ id }) => id) : [];
  if (!terms || ids.length === 0) return [];
  const askedNow = Object.fromEntries(ids.map((id) => [id, terms.now]));
  return context.store.saveAsked(terms.config.kid, { ...terms.askedAt, ...askedNow }) ? ids : [];
}

async function waitForReceipt(context: Context): Promise<ConsentReceipt> {
  const { config, record } = context;
  if (config && record && !isFresh(record, ledgerTime(context), RECEIPT_MS))
    await checkGrants(context, config.kid);
  for (;;) {
    await context.ongoingCheck;
    const { phase, granted } = currentSnapshot(context);
    if (phase === 'unavailable') return emptyReceipt(hasGpc(context), ledgerTime(context));
    const terms = termsOf(context);
    if (terms && (phase === 'decided' || granted.length > 0)) return createReceipt(terms);
    await new Promise<void>((wake) => context.waiters.push(wake));
  }
}

export type Controller = ReturnType<typeof createController>;

export function createController(deps: ControllerDeps) {
  const context = createContext(deps);
  return {
    load: (inPage: Config | null = null) => loadConfig(context, inPage),
    snapshot: () => currentSnapshot(context),
    /** True if the ledger has every choice of this browser. */
    isRecorded: () => isRecorded(context.record),
    /** No gated script starts while the ledger is asked, so the set is empty then. */
    startable: () => new Set(context.ongoingCheck ? [] : currentSnapshot(context).granted),
    granted: () => new Set(currentSnapshot(context).granted),
    /** The present terms; null while there is nothing to show. They change while the page is open. */
    terms: () => termsOf(context),
    choose: (wants: Wants) => choose(context, wants),
    withdraw: (ids: readonly string[] | null) => withdraw(context, ids),
    askAgain: () => serialise(context, () => askAgain(context)),
    /** After the choices under way: none of them is lost. */
    join: (session: string) =>
      serialise(context, async () => {
        const result = await joinAccount(context, session);
        // The account may have granted elsewhere what this browser's signal opts out of.
        if (result.joined) await reportSignal(context);
        return result;
      }),
    receipt: () => waitForReceipt(context),
    /** @returns the person's copy, as a page to print; nothing if it cannot be had */
    receiptPage: async () => context.record && context.server?.receiptPage(context.record),
    startAsking: () => startAsking(context),
  };
}
