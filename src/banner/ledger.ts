import { toJson } from '../browser/encoding.ts';
import { type Context, ledgerTime, notifyPage, termsOf, updateRecord } from './context.ts';
import { hasGrants, reconcile } from './reconcile.ts';
import { type ConsentRecord, createPrincipal } from './record.ts';
import { isFailure, type Standings } from './server.ts';
import type { JoinResult } from './types.ts';

/** Asks the ledger for the choices of this browser's principal, and joins the browser with an account. */

/** After a failure an open page waits this long, and twice as long after each further one. */
export const RETRY_MS = 30_000;

/** An open page asks the ledger again after half a day: an answer counts for a day. */
const CHECK_MS = 43_200_000;

/** A visible page of a joined browser asks this often, so that a withdrawal elsewhere ends here. */
const JOINED_MS = 5000;

function applyStandings(
  context: Context,
  sentRecord: ConsentRecord,
  kid: string,
  { purposes, state }: Standings,
): void {
  const { store } = context;
  const record = store.load(kid);
  // Another tab may have created a new principal meanwhile.
  if (record?.principalId !== sentRecord.principalId) return;
  const reconciled = reconcile(record, sentRecord, purposes);
  // The person was erased: the next choice creates a new principal.
  if (!reconciled) {
    store.remove(kid);
    return;
  }
  store.save(kid, { ...reconciled, confirmedAt: ledgerTime(context) });
  // A state that is older than a choice would let the site's server process what was refused since.
  const isUnchanged = toJson(record.choices) === toJson(sentRecord.choices);
  // A cookie without choices, which the ledger does not complete: another host has an unsent refusal.
  const isComplete = reconciled.followsLedger || Object.keys(reconciled.choices).length > 0;
  if (isUnchanged && isComplete && record.pending.length === 0) store.saveState(state);
}

async function askLedger(context: Context, kid: string): Promise<void> {
  const { server, store } = context;
  const record = store.load(kid);
  context.record = record;
  if (!server || !record || !(hasGrants(record) || record.followsLedger || store.isShared)) return;
  const answer = await server.state(record);
  if (!isFailure(answer)) applyStandings(context, record, kid, answer);
  // Many pages behind one address share its rate limit, so each failure doubles the wait.
  context.failures = isFailure(answer) ? context.failures + 1 : 0;
  const mayRetry = isFailure(answer) && answer.transient;
  scheduleCheck(
    context,
    kid,
    mayRetry ? Math.min(RETRY_MS * 2 ** (context.failures - 1), CHECK_MS) : undefined,
  );
}

/** @param ms missing after an answer of the ledger */
export function scheduleCheck(context: Context, kid: string, ms?: number): void {
  const record = context.store.load(kid);
  const isWatched = record?.followsLedger && hasGrants(record) && context.isVisible();
  clearTimeout(context.recheckTimer);
  context.recheckTimer = setTimeout(
    // A page that was hidden meanwhile asks when the person comes back.
    () => (ms === undefined && isWatched && !context.isVisible() ? scheduleCheck : checkGrants)(context, kid),
    ms ?? (isWatched ? JOINED_MS : CHECK_MS),
  );
}

/** Ends grants that ended elsewhere. No gated script starts until the ledger has answered. */
export function checkGrants(context: Context, kid: string): Promise<void> {
  context.ongoingCheck ??= askLedger(context, kid).finally(() => {
    context.ongoingCheck = null;
    if (context.config) reloadRecord(context, kid);
    context.onChecked();
  });
  return context.ongoingCheck;
}

export function reloadRecord(context: Context, kid: string): void {
  context.record = context.store.load(kid);
  notifyPage(context);
}

/** Nothing is stored until the server has joined them, so a join that fails leaves no trace here. */
export async function joinAccount(context: Context, session: string): Promise<JoinResult> {
  const { server, store } = context;
  const kid = termsOf(context)?.config.kid;
  if (!server || kid === undefined)
    return { joined: false, status: 0, error: context.problem ?? 'unreachable' };
  const stored = store.load(kid) ?? context.record;
  const record: ConsentRecord = stored ?? { ...(await createPrincipal()), choices: {}, pending: [] };
  const result = await server.join(session, record);
  if (!result.joined) return result;
  const other = store.load(kid);
  // Another tab has stored a new principal meanwhile: that one is joined too.
  if (other && other.principalId !== record.principalId) return joinAccount(context, session);
  context.record = other ?? record;
  updateRecord(context, kid, (found) => ({ ...found, followsLedger: true }));
  // An answer that is under way may be older than the join.
  await context.ongoingCheck;
  await checkGrants(context, kid);
  return result;
}
