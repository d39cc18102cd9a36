import type { Choice, ConsentRecord } from './record.ts';
import type { Standing } from './server.ts';
import { choiceOf, isConfirmed } from './status.ts';

/**
 * Applies the ledger's answer about this browser's principal: a grant that ended elsewhere ends here. Pure.
 */

export const hasGrants = ({ choices }: ConsentRecord): boolean =>
  Object.values(choices).some((choice) => choice.choice === 'granted' && !choice.ended);

/** True if the ledger has every choice. */
export const isRecorded = (record: ConsentRecord | null): boolean =>
  !record || (record.pending.length === 0 && Object.values(record.choices).every(({ proof }) => proof));

/** True if the ledger has confirmed every grant within the last `ms`. */
export const isFresh = (record: ConsentRecord, now: number, ms: number): boolean =>
  Object.values(record.choices).every(
    (choice) => choice.choice !== 'granted' || isConfirmed(record, choice, now, ms),
  );

/** @returns undefined if the person is asked as if for the first time */
function choiceAfter(choice: Choice, { allowed, reason, at, proof }: Standing): Choice | undefined {
  if (choice.choice !== 'granted' || allowed) return choice;
  if (reason === 'expired' || reason === 'policy-outdated') return { ...choice, ended: reason };
  if (reason !== 'denied' && reason !== 'withdrawn') return undefined;
  const { overGpc: _over, ...rest } = choice;
  return { ...rest, choice: reason, at: Date.parse(at ?? '') || choice.at, proof };
}

/**
 * @param sentRecord the record when the ledger was asked: a choice made since is newer than the answer
 * @returns null if the person was erased: the principal ends with them
 */
export function reconcile(
  record: ConsentRecord,
  sentRecord: ConsentRecord,
  standings: readonly Standing[],
): ConsentRecord | null {
  if (standings.some(({ reason }) => reason === 'erased')) return null;
  const byPurpose = new Map(standings.map((standing) => [standing.purpose, standing]));
  const choices = Object.entries(record.choices).flatMap(([id, choice]): [string, Choice][] => {
    const standing = byPurpose.get(id);
    const sentChoice = choiceOf(sentRecord, id);
    const isNewer = sentChoice?.at !== choice.at || sentChoice.choice !== choice.choice;
    const next = standing && !isNewer ? choiceAfter(choice, standing) : choice;
    return next ? [[id, next]] : [];
  });
  return { ...record, choices: Object.fromEntries(choices) };
}
