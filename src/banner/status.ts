import type { Config, Purpose } from './config.ts';
import type { Choice, ConsentRecord } from './record.ts';
import type { ConsentReceipt, ConsentSnapshot, PurposeStatus } from './types.ts';

/** Computes the granted and the open purposes from the tenant's terms and this browser's record. Pure. */

/** A choice of later than that was made under a clock that was ahead: when it ends nobody knows. */
const LATEST_MS = 86_400_000;

export interface Terms {
  readonly config: Config;
  readonly record: ConsentRecord | null;
  readonly gpc: boolean;
  readonly now: number;
  /** When a yes over the signal was last asked for, by purpose. */
  readonly askedAt: Readonly<Record<string, number>>;
}

/** A year in which nobody asks twice to overrule the signal (contract-2 section 13). */
const ASK_MS = 365 * 86_400_000;

export function choiceOf(record: ConsentRecord | null, id: string): Choice | undefined {
  return record && Object.hasOwn(record.choices, id) ? record.choices[id] : undefined;
}

/** Without an answer of the ledger a grant counts for a day since the last one, which may be the one to the grant. */
export function isConfirmed(record: ConsentRecord, choice: Choice, now: number, ms = LATEST_MS): boolean {
  const at = Math.max(record.confirmedAt ?? 0, choice.proof ? choice.at : 0);
  return Math.abs(now - at) <= ms;
}

/** The server decides by the same places (contract-2 section 22). No definition comes before all entries. */
const isUntil = (chosen: number | null, place: number | null): boolean =>
  place !== null && (chosen ?? -1) <= place;

/** The strictest GPC policy since the choice: a laxer one must not end an opt-out. */
function strictestGpc({ gpc, definition }: Purpose, chosen: number | null): Purpose['gpc'] {
  if (gpc === 'opt-out' || isUntil(chosen, definition.optOutUntil)) return 'opt-out';
  return isUntil(chosen, definition.askUntil) ? 'ask' : gpc;
}

/** The order is the ledger's (contract section 7): a signal before a choice, an expiry before an outdated policy. */
export function statusOf({ config, record, gpc, now }: Terms, purpose: Purpose): PurposeStatus {
  const choice = choiceOf(record, purpose.id);
  const ownStatus = ((): PurposeStatus => {
    if (!choice) return 'unasked';
    if (choice.until <= now || choice.at > now + LATEST_MS) return 'expired';
    if (choice.ended) return choice.ended;
    if (record && choice.choice === 'granted' && !isConfirmed(record, choice, now)) return 'expired';
    const isOfOldPolicy = choice.version < config.policy.material;
    return isOfOldPolicy || isUntil(choice.definition, purpose.definition.outdatedUntil)
      ? 'policy-outdated'
      : choice.choice;
  })();
  const policy = choice ? strictestGpc(purpose, choice.definition) : purpose.gpc;
  if (!gpc || policy === 'ignore') return ownStatus;
  // Under the signal only a live yes over it counts: the first layer does not ask where the signal answers.
  return policy === 'ask' && choice?.overGpc && ownStatus === 'granted' ? ownStatus : 'gpc-opt-out';
}

/** Purposes for which the settings may ask for a yes over the signal. */
export const askable = (terms: Terms): readonly Purpose[] =>
  terms.config.purposes.filter(
    (purpose) =>
      purpose.gpc === 'ask' &&
      statusOf(terms, purpose) === 'gpc-opt-out' &&
      !((terms.askedAt[purpose.id] ?? 0) > terms.now - ASK_MS),
  );

export const OPEN: ReadonlySet<PurposeStatus> = new Set(['unasked', 'expired', 'policy-outdated']);

export const askedPurposes = (terms: Terms): readonly Purpose[] =>
  terms.config.purposes.filter((purpose) => OPEN.has(statusOf(terms, purpose)));

export const granted = (terms: Terms): readonly Purpose[] =>
  terms.config.purposes.filter((purpose) => statusOf(terms, purpose) === 'granted');

/** Why the person is asked, again or for the first time. */
export function whyAsked(terms: Terms) {
  const purposes = askedPurposes(terms);
  const statuses = new Set(purposes.map((purpose) => statusOf(terms, purpose)));
  const { material } = terms.config.policy;
  const isOfOldPolicy = ({ id }: Purpose): boolean =>
    (choiceOf(terms.record, id)?.version ?? material) < material;
  // A purpose in other words is a new purpose, under the same policy.
  if (statuses.has('policy-outdated') && purposes.some(isOfOldPolicy)) return 'policy';
  if (statuses.has('expired')) return 'expired';
  return Object.keys(terms.record?.choices ?? {}).length > 0 ? 'purpose' : 'first';
}

/** The snapshot for the page; null terms: nobody could be asked, and `problem` says why. */
export function snapshotOf(terms: Terms | null, problem: string | null, gpc: boolean): ConsentSnapshot {
  if (!terms) {
    const phase = problem === null ? 'loading' : 'unavailable';
    return { phase, problem, gpc, granted: [], purposes: [], principalId: null };
  }
  const { config, record } = terms;
  return {
    phase: askedPurposes(terms).length > 0 ? 'asking' : 'decided',
    problem,
    gpc,
    granted: granted(terms).map(({ id }) => id),
    purposes: config.purposes.map((purpose) => ({
      id: purpose.id,
      title: purpose.title,
      status: statusOf(terms, purpose),
      until: choiceOf(record, purpose.id)?.until ?? null,
    })),
    principalId: record?.principalId ?? null,
  };
}

/** The purpose of the agent; the proof of its grant is sent. */
const AGENT_PURPOSE = 'device-identification';

/** Nothing is granted: the server could not be asked. */
export const emptyReceipt = (gpc: boolean, now: number): ConsentReceipt => ({
  purposes: [],
  gpc,
  version: 0,
  issuedAt: now,
});

/** Version, time and proof are of one entry: the agent's grant, else the latest choice. */
function leading(terms: Terms, record: ConsentRecord, purposes: readonly string[]) {
  const leadingId = purposes.includes(AGENT_PURPOSE) ? AGENT_PURPOSE : purposes[0];
  if (leadingId !== undefined) return choiceOf(record, leadingId);
  const purposeIds = new Set(terms.config.purposes.map(({ id }) => id));
  const choices = Object.entries(record.choices).filter(([id]) => purposeIds.has(id));
  return choices.sort(([, a], [, b]) => b.at - a.at)[0]?.[1];
}

export function createReceipt(terms: Terms): ConsentReceipt {
  const { config, record, gpc, now } = terms;
  const empty = { ...emptyReceipt(gpc, now), version: config.policy.version };
  if (!record) return empty;
  const purposes = granted(terms).map(({ id }) => id);
  const lead = leading(terms, record, purposes);
  const over = gpc && purposes.includes(AGENT_PURPOSE) && choiceOf(record, AGENT_PURPOSE)?.overGpc;
  return {
    ...empty,
    ...(over && { overGpc: over }),
    purposes,
    principalId: record.principalId,
    ...(lead && { version: lead.version, issuedAt: lead.at, ...(lead.proof && { proof: lead.proof }) }),
  };
}
