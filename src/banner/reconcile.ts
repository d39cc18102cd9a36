import type { Choice, ConsentRecord } from './record.ts';
import type { Standing } from './server.ts';
import { choiceOf, isConfirmed } from './status.ts';

/** From what the ledger says of this browser's principal to this browser's record: a grant that ended elsewhere ends here. Pure. */

export const hasGrants = ({ choices }: ConsentRecord): boolean =>
  Object.values(choices).some((choice) => choice.choice === 'granted' && !choice.ended);

/** Every choice has its entry. */
export const isRecorded = (record: ConsentRecord | null): boolean =>
  !record || (record.pending.length === 0 && Object.values(record.choices).every(({ proof }) => proof));

/** The ledger has answered for every grant in this time. */
export const isFresh = (record: ConsentRecord, now: number, ms: number): boolean =>
  Object.values(record.choices).every(
    (choice) => choice.choice !== 'granted' || isConfirmed(record, choice, now, ms),
  );

/** Undefined: the person is asked as if for the first time. */
function choiceAfter(choice: Choice, { allowed, reason, at, proof }: Standing): Choice | undefined {
  if (choice.choice !== 'granted' || allowed) return choice;
  if (reason === 'expired' || reason === 'policy-outdated') return { ...choice, ended: reason };
  if (reason !== 'denied' && reason !== 'withdrawn') return undefined;
  const { overGpc: _over, ...rest } = choice;
  return { ...rest, choice: reason, at: Date.parse(at ?? '') || choice.at, proof };
}

/**
 * @param sentRecord the record when the ledger was asked: a choice made since is newer than the answer
 * @returns null where the person was erased, and this principal with them
 */
export function reconcile(
  present: ConsentRecord,
  sentRecord: ConsentRecord,
  standings: readonly Standing[],
): ConsentRecord | null {
  if (standings.some(({ reason }) => reason === 'erased')) return null;
  const byPurpose = new Map(standings.map((standing) => [standing.purpose, standing]));
  const choices = Object.entries(present.choices).flatMap(([id, choice]): [string, Choice][] => {
    const standing = byPurpose.get(id);
    const then = choiceOf(sentRecord, id);
    const isNewer = then?.at !== choice.at || then.choice !== choice.choice;
    const next = standing && !isNewer ? choiceAfter(choice, standing) : choice;
    return next ? [[id, next]] : [];
  });
  return { ...present, choices: Object.fromEntries(choices) };
}
