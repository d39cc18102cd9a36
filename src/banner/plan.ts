import { toJson } from '../browser/encoding.ts';
import type { Purpose } from './config.ts';
import type { Action, Choice, ConsentRecord, Write } from './record.ts';
import type { Entry } from './server.ts';
import { choiceOf, OPEN_STATUSES, statusOf, type Terms } from './status.ts';

/**
 * Plans the writes for a person's choices and applies them to the record. Refusals come first: a fault in
 * between grants less.
 */

const DAY_MS = 86_400_000;

/** A yes, a no or a yes over GPC by purpose id. Purposes without an entry stay unchanged. */
export type Wants = ReadonlyMap<string, boolean | 'over-gpc'>;

const ACTIONS: readonly Action[] = ['withdraw', 'deny', 'grant'];

function actionFor(terms: Terms, purpose: Purpose, want: ReturnType<Wants['get']>): Action | null {
  if (typeof want !== 'boolean') return null;
  const status = statusOf(terms, purpose);
  // A grant that GPC only overrules would come back when GPC is switched off, so a no withdraws it.
  const isOverruled = status === 'gpc-opt-out' && choiceOf(terms.record, purpose.id)?.choice === 'granted';
  if (isOverruled && !want) return 'withdraw';
  // GPC is not a choice of the person, so nothing is written for it.
  if (status === 'gpc-opt-out' || (status === 'granted') === want)
    return OPEN_STATUSES.includes(status) ? 'deny' : null;
  if (want) return 'grant';
  return status === 'granted' ? 'withdraw' : 'deny';
}

export function planWrites(terms: Terms, wants: Wants, createKey: () => string): readonly Write[] {
  const { config, gpc } = terms;
  const writeOf = (action: Action, purposes: readonly Purpose[]): Write => ({
    ...{ action, purposes: purposes.map(({ id }) => id), policyVersion: config.policy.version, gpc },
    // A grant names the definitions that were shown: it never counts for words that the person did not see.
    ...(action === 'grant' && {
      definitions: Object.fromEntries(
        purposes.flatMap(({ id, definition: { seq } }) => (seq === null ? [] : [[id, seq]])),
      ),
    }),
    key: createKey(),
  });
  // Each purpose gets its own write: the ledger accepts a yes over GPC for one purpose alone.
  const overGpcWrites = config.purposes
    .filter(({ id, gpc: policy }) => gpc && policy === 'ask' && wants.get(id) === 'over-gpc')
    .map((purpose): Write => ({ ...writeOf('grant', [purpose]), overGpc: true }));
  const plainWrites = ACTIONS.flatMap((action) => {
    const purposes = config.purposes.filter(
      (purpose) => actionFor(terms, purpose, wants.get(purpose.id)) === action,
    );
    return purposes.length === 0 ? [] : [writeOf(action, purposes)];
  });
  return [...plainWrites, ...overGpcWrites];
}

export const CHOICE_BY_ACTION = { grant: 'granted', deny: 'denied', withdraw: 'withdrawn' } as const;

const withChoices = (
  record: ConsentRecord,
  choices: readonly [id: string, choice: Choice][],
): ConsentRecord => ({
  ...record,
  choices: { ...record.choices, ...Object.fromEntries(choices) },
});

/** The record after a write. Without entries the choice is in force here and not in the ledger yet. */
export function rememberWrite(
  record: ConsentRecord,
  write: Write,
  { config, now }: Pick<Terms, 'config' | 'now'>,
  entries: readonly Entry[] = [],
): ConsentRecord {
  const purposeById = new Map(config.purposes.map((purpose) => [purpose.id, purpose]));
  const newChoices = write.purposes.map((id): [string, Choice] => {
    const entry = entries.find(({ purpose }) => purpose === id);
    const proof = entry ? { seq: entry.seq, hash: entry.hash } : null;
    const until = now + (purposeById.get(id)?.ttlDays ?? 0) * DAY_MS;
    const definition = purposeById.get(id)?.definition.seq ?? null;
    const overGpc = write.action === 'grant' && write.overGpc && { overGpc: write.overGpc };
    const choice = { choice: CHOICE_BY_ACTION[write.action], version: write.policyVersion, definition };
    return [id, { ...choice, at: now, until, proof, ...overGpc }];
  });
  const changed = withChoices(record, newChoices);
  return write.action === 'grant' ? dropPending(changed, write.purposes) : changed;
}

/** Drops pending refusals of purposes granted since: the server must not record an older refusal later. */
const dropPending = (record: ConsentRecord, granted: readonly string[]): ConsentRecord => ({
  ...record,
  pending: record.pending
    .map((write) => ({ ...write, purposes: write.purposes.filter((id) => !granted.includes(id)) }))
    .filter(({ purposes }) => purposes.length > 0),
});

/** Purposes that another tab refused since `sentRecord` was read, or removed together with the record. */
export function findRefused(
  sentRecord: ConsentRecord | null,
  storedRecord: ConsentRecord | null,
  purposes: readonly string[],
): readonly string[] {
  if (sentRecord && !storedRecord) return purposes;
  return purposes.filter((id) => {
    const choice = choiceOf(storedRecord, id);
    const isNew = toJson(choice) !== toJson(choiceOf(sentRecord, id));
    return isNew && choice !== undefined && choice.choice !== 'granted';
  });
}

/** Purposes whose refusal is before these entries in the ledger. An unsent refusal will come after them. */
export const findOvertaken = (record: ConsentRecord | null, entries: readonly Entry[]): readonly string[] =>
  entries
    .filter(({ purpose, seq }) => {
      const choice = choiceOf(record, purpose);
      return !choice || (choice.proof !== null && choice.proof.seq < seq);
    })
    .map(({ purpose }) => purpose);

/** Adds the proofs of refusals that have reached the ledger now. */
export function addProofs(record: ConsentRecord, entries: readonly Entry[]): ConsentRecord {
  const proven = entries.flatMap(({ purpose, seq, hash }): [string, Choice][] => {
    const choice = choiceOf(record, purpose);
    return choice && choice.proof === null ? [[purpose, { ...choice, proof: { seq, hash } }]] : [];
  });
  return withChoices(record, proven);
}

/**
 * Withdraws by the stored record alone, for a page without the tenant's terms.
 * @returns null if nothing is granted
 */
export function withdrawStored(
  record: ConsentRecord,
  ids: readonly string[] | null,
  { now, gpc, createKey }: { readonly now: number; readonly gpc: boolean; readonly createKey: () => string },
): ConsentRecord | null {
  const grants = Object.entries(record.choices)
    .filter(([id]) => ids === null || ids.includes(id))
    // An expired grant is withdrawn too: without the server's time, this device's clock may be ahead.
    .filter(([, { choice }]) => choice === 'granted');
  if (grants.length === 0) return null;
  const policyVersion = Math.max(...grants.map(([, { version }]) => version));
  const write: Write = {
    action: 'withdraw',
    purposes: grants.map(([id]) => id),
    policyVersion,
    gpc,
    key: createKey(),
  };
  const newChoices = grants.map(([id, { at, until, definition }]): [string, Choice] => {
    // The withdrawal is remembered for as long as the grant would have been.
    const choice = { choice: 'withdrawn', at: now, until: now + (until - at) } as const;
    return [id, { ...choice, version: policyVersion, definition, proof: null }];
  });
  return withChoices({ ...record, pending: [...record.pending, write] }, newChoices);
}

export const removePending = (record: ConsentRecord, { key }: Write): ConsentRecord => ({
  ...record,
  pending: record.pending.filter((write) => write.key !== key),
});

export const splitPending = (
  record: ConsentRecord,
  { key }: Write,
  parts: readonly Write[],
): ConsentRecord => ({
  ...record,
  pending: record.pending.flatMap((write) => (write.key === key ? parts : [write])),
});
