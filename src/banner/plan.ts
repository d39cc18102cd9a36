import { toJson } from '../browser/encoding.ts';
import type { Purpose } from './config.ts';
import type { Action, Choice, ConsentRecord, Write } from './record.ts';
import type { Entry } from './server.ts';
import { choiceOf, OPEN, statusOf, type Terms } from './status.ts';

/** From what a person wants to what is written, refusals first: whatever breaks in between, less is granted. Pure. */

const DAY_MS = 86_400_000;

/** Wanted or not, or wanted over the signal, by purpose id; what is not named stays as it is. */
export type Wants = ReadonlyMap<string, boolean | 'over-gpc'>;

const ACTIONS: readonly Action[] = ['withdraw', 'deny', 'grant'];

function actionFor(terms: Terms, purpose: Purpose, choice: ReturnType<Wants['get']>): Action | null {
  if (typeof choice !== 'boolean') return null;
  const status = statusOf(terms, purpose);
  // The signal may end, and a grant that it overrules would come back: taking it back is the person's own choice.
  const overruled = status === 'gpc-opt-out' && choiceOf(terms.record, purpose.id)?.choice === 'granted';
  if (overruled && !choice) return 'withdraw';
  // A signal is not a choice, and no choice is made of it.
  if (status === 'gpc-opt-out' || (status === 'granted') === choice) return OPEN.has(status) ? 'deny' : null;
  if (choice) return 'grant';
  return status === 'granted' ? 'withdraw' : 'deny';
}

export function planWrites(terms: Terms, wants: Wants, createKey: () => string): readonly Write[] {
  const { config, gpc } = terms;
  const writeOf = (action: Action, purposes: readonly Purpose[]): Write => ({
    ...{ action, purposes: purposes.map(({ id }) => id), policyVersion: config.policy.version, gpc },
    // A grant is about what was shown, and never counts for words that the person did not see.
    ...(action === 'grant' && {
      definitions: Object.fromEntries(
        purposes.flatMap(({ id, definition: { seq } }) => (seq === null ? [] : [[id, seq]])),
      ),
    }),
    key: createKey(),
  });
  // One by one: the ledger accepts no other yes over the signal.
  const over = config.purposes
    .filter(({ id, gpc: policy }) => gpc && policy === 'ask' && wants.get(id) === 'over-gpc')
    .map((purpose): Write => ({ ...writeOf('grant', [purpose]), overGpc: true }));
  const plain = ACTIONS.flatMap((action) => {
    const purposes = config.purposes.filter(
      (purpose) => actionFor(terms, purpose, wants.get(purpose.id)) === action,
    );
    return purposes.length === 0 ? [] : [writeOf(action, purposes)];
  });
  return [...plain, ...over];
}

export const WORD = { grant: 'granted', deny: 'denied', withdraw: 'withdrawn' } as const;

/** The record after a write. Without entries the choice holds here and is not in the ledger yet. */
export function remember(
  record: ConsentRecord,
  write: Write,
  { config, now }: Pick<Terms, 'config' | 'now'>,
  entries: readonly Entry[] = [],
): ConsentRecord {
  const terms = new Map(config.purposes.map((purpose) => [purpose.id, purpose]));
  const newChoices = write.purposes.map((id): [string, Choice] => {
    const entry = entries.find(({ purpose }) => purpose === id);
    const proof = entry ? { seq: entry.seq, hash: entry.hash } : null;
    const until = now + (terms.get(id)?.ttlDays ?? 0) * DAY_MS;
    const definition = terms.get(id)?.definition.seq ?? null;
    const over = write.action === 'grant' && write.overGpc && { overGpc: write.overGpc };
    const choice = { choice: WORD[write.action], version: write.policyVersion, definition };
    return [id, { ...choice, at: now, until, proof, ...over }];
  });
  const choices = { ...record.choices, ...Object.fromEntries(newChoices) };
  return write.action === 'grant'
    ? supersede({ ...record, choices }, write.purposes)
    : { ...record, choices };
}

/** A refusal that the server would not take is not told it after a newer grant. */
const supersede = (record: ConsentRecord, granted: readonly string[]): ConsentRecord => ({
  ...record,
  pending: record.pending
    .map((write) => ({ ...write, purposes: write.purposes.filter((id) => !granted.includes(id)) }))
    .filter(({ purposes }) => purposes.length > 0),
});

/** Purposes that another tab refused, or removed with its record, since `before` was read. */
export function refusedSince(
  before: ConsentRecord | null,
  present: ConsentRecord | null,
  purposes: readonly string[],
): readonly string[] {
  if (before && !present) return purposes;
  return purposes.filter((id) => {
    const choice = choiceOf(present, id);
    const isNew = toJson(choice) !== toJson(choiceOf(before, id));
    return isNew && choice !== undefined && choice.choice !== 'granted';
  });
}

/**
 * Purposes whose refusal is older in the ledger than these entries; a refusal that is not sent yet will
 * follow them.
 */
export const overtaken = (record: ConsentRecord | null, entries: readonly Entry[]): readonly string[] =>
  entries
    .filter(({ purpose, seq }) => {
      const choice = choiceOf(record, purpose);
      return !choice || (choice.proof !== null && choice.proof.seq < seq);
    })
    .map(({ purpose }) => purpose);

/** A refusal that reached the ledger after all: only its proof is new. */
export function prove(record: ConsentRecord, entries: readonly Entry[]): ConsentRecord {
  const proven = entries.flatMap(({ purpose, seq, hash }): [string, Choice][] => {
    const choice = choiceOf(record, purpose);
    return choice && choice.proof === null ? [[purpose, { ...choice, proof: { seq, hash } }]] : [];
  });
  return { ...record, choices: { ...record.choices, ...Object.fromEntries(proven) } };
}

/** A withdrawal by what this browser remembers alone: of terms that could not be asked for. Null: nothing is granted. */
export function takeBack(
  record: ConsentRecord,
  ids: readonly string[] | null,
  { now, gpc, createKey }: { readonly now: number; readonly gpc: boolean; readonly createKey: () => string },
): { readonly record: ConsentRecord; readonly write: Write } | null {
  const live = Object.entries(record.choices)
    .filter(([id]) => ids === null || ids.includes(id))
    // One that has expired, too: nobody told the time, and this device's clock may be ahead.
    .filter(([, { choice }]) => choice === 'granted');
  if (live.length === 0) return null;
  const policyVersion = Math.max(...live.map(([, { version }]) => version));
  const write: Write = {
    action: 'withdraw',
    purposes: live.map(([id]) => id),
    policyVersion,
    gpc,
    key: createKey(),
  };
  const newChoices = live.map(([id, { at, until, definition }]): [string, Choice] => {
    // Remembered as long as the grant was to be.
    const choice = { choice: 'withdrawn', at: now, until: now + (until - at) } as const;
    return [id, { ...choice, version: policyVersion, definition, proof: null }];
  });
  const choices = { ...record.choices, ...Object.fromEntries(newChoices) };
  return { record: { ...record, choices, pending: [...record.pending, write] }, write };
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
