import type { Config, Purpose } from './config.ts';
import type { Choice, ConsentRecord } from './record.ts';
import type { ConsentReceipt, ConsentSnapshot, PurposeStatus } from './types.ts';

/** Computes statuses, snapshot and receipt from the tenant's terms and this browser's record. Pure. */

const DAY_MS = 86_400_000;

export interface Terms {
  readonly config: Config;
  readonly record: ConsentRecord | null;
  readonly gpc: boolean;
  readonly now: number;
  /** When a yes over GPC was last asked for, by purpose, in epoch milliseconds. */
  readonly askedAt: Readonly<Record<string, number>>;
}

/** The banner asks for a yes over GPC at most once a year (contract-2 section 13). */
const ASK_INTERVAL_MS = 365 * DAY_MS;

export function choiceOf(record: ConsentRecord | null, id: string): Choice | undefined {
  return record && Object.hasOwn(record.choices, id) ? record.choices[id] : undefined;
}

/** A grant counts for a day after the ledger's last answer, which may be the one that recorded it. */
export function isConfirmed(record: ConsentRecord, choice: Choice, now: number, ms = DAY_MS): boolean {
  const at = Math.max(record.confirmedAt ?? 0, choice.proof ? choice.at : 0);
  return Math.abs(now - at) <= ms;
}

/** The server compares the same numbers (contract-2 section 22). Null is older than every entry. */
const isUpTo = (chosen: number | null, seq: number | null): boolean => seq !== null && (chosen ?? -1) <= seq;

/** The strictest GPC policy since the choice was made: a laxer one must not end an opt-out. */
function strictestGpc({ gpc, definition }: Purpose, chosen: number | null): Purpose['gpc'] {
  if (gpc === 'opt-out' || isUpTo(chosen, definition.optOutUntil)) return 'opt-out';
  return isUpTo(chosen, definition.askUntil) ? 'ask' : gpc;
}

/** @returns when the person is asked again, in epoch milliseconds */
export function endOf({ refusalDays }: Config, { ttlDays }: Purpose, { choice, at, until }: Choice): number {
  if (choice !== 'granted') return at + refusalDays * DAY_MS;
  return until || at + ttlDays * DAY_MS;
}

/**
 * In the ledger's order (contract section 7): GPC comes before a choice, an expiry before an outdated policy.
 */
export function statusOf({ config, record, gpc, now }: Terms, purpose: Purpose): PurposeStatus {
  const choice = choiceOf(record, purpose.id);
  const ownStatus = ((): PurposeStatus => {
    if (!choice) return 'unasked';
    // A choice from the future was made under a wrong clock, so its end is unknown.
    if (endOf(config, purpose, choice) <= now || choice.at > now + DAY_MS) return 'expired';
    if (choice.ended) return choice.ended;
    if (record && choice.choice === 'granted' && !isConfirmed(record, choice, now)) return 'expired';
    const isOfOldPolicy = choice.version < config.policy.material;
    return isOfOldPolicy || isUpTo(choice.definition, purpose.definition.outdatedUntil)
      ? 'policy-outdated'
      : choice.choice;
  })();
  const policy = choice ? strictestGpc(purpose, choice.definition) : purpose.gpc;
  if (!gpc || policy === 'ignore') return ownStatus;
  // Under GPC only a live yes over it counts, and the first layer does not ask: GPC is the answer.
  return policy === 'ask' && choice?.overGpc && ownStatus === 'granted' ? ownStatus : 'gpc-opt-out';
}

export const purposesWith = (terms: Terms, ...statuses: readonly PurposeStatus[]): readonly Purpose[] =>
  terms.config.purposes.filter((purpose) => statuses.includes(statusOf(terms, purpose)));

/** Purposes for which the settings may ask for a yes over GPC. */
export const askablePurposes = (terms: Terms): readonly Purpose[] =>
  purposesWith(terms, 'gpc-opt-out').filter(
    ({ id, gpc }) => gpc === 'ask' && !((terms.askedAt[id] ?? 0) > terms.now - ASK_INTERVAL_MS),
  );

export const OPEN_STATUSES: readonly PurposeStatus[] = ['unasked', 'expired', 'policy-outdated'];

export const askedPurposes = (terms: Terms): readonly Purpose[] => purposesWith(terms, ...OPEN_STATUSES);

export const grantedPurposes = (terms: Terms): readonly Purpose[] => purposesWith(terms, 'granted');

export function whyAsked(terms: Terms) {
  const purposes = askedPurposes(terms);
  const statuses = new Set(purposes.map((purpose) => statusOf(terms, purpose)));
  const { material } = terms.config.policy;
  const isOfOldPolicy = ({ id }: Purpose): boolean =>
    (choiceOf(terms.record, id)?.version ?? material) < material;
  // New words for a purpose, under the same policy, make it a new purpose.
  if (statuses.has('policy-outdated') && purposes.some(isOfOldPolicy)) return 'policy';
  if (statuses.has('expired')) return 'expired';
  return Object.keys(terms.record?.choices ?? {}).length > 0 ? 'purpose' : 'first';
}

/** @param terms null if nobody could be asked; `problem` says why */
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
    granted: grantedPurposes(terms).map(({ id }) => id),
    purposes: config.purposes.map((purpose) => {
      const choice = choiceOf(record, purpose.id);
      const until = choice ? endOf(config, purpose, choice) : null;
      return { id: purpose.id, title: purpose.title, status: statusOf(terms, purpose), until };
    }),
    principalId: record?.principalId ?? null,
  };
}

/** The agent's purpose: the receipt contains the proof of its grant. */
export const AGENT_PURPOSE = 'device-identification';

/** Grants nothing: the server could not be asked. */
export const emptyReceipt = (gpc: boolean, now: number): ConsentReceipt => ({
  purposes: [],
  gpc,
  version: 0,
  issuedAt: now,
});

/** The receipt's version, time and proof are those of the agent's grant, otherwise of the latest choice. */
function leadingChoice(terms: Terms, record: ConsentRecord, purposes: readonly string[]) {
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
  const purposes = grantedPurposes(terms).map(({ id }) => id);
  const leading = leadingChoice(terms, record, purposes);
  const overGpc = gpc && purposes.includes(AGENT_PURPOSE) && choiceOf(record, AGENT_PURPOSE)?.overGpc;
  return {
    ...empty,
    ...(overGpc && { overGpc }),
    purposes,
    principalId: record.principalId,
    ...(leading && {
      version: leading.version,
      issuedAt: leading.at,
      ...(leading.proof?.hash && { proof: leading.proof }),
    }),
  };
}
