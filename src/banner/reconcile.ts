import type { Choice, ConsentRecord } from './record.ts';
import type { Standing } from './server.ts';
import { choiceOf, isConfirmed } from './status.ts';

/**
 * Applies the ledger's answer about this browser's principal: a grant that ended elsewhere ends here, and a
 * browser that follows the ledger takes over each choice. Pure.
 */

export const hasGrants = ({ choices }: ConsentRecord): boolean =>
  Object.values(choices).some((choice) => choice.choice === 'granted' && !choice.ended);

/** True if the ledger has every choice. */
export const isRecorded = (record: ConsentRecord | null): boolean =>
  !record || (record.pending.length === 0 && Object.values(record.choices).every(({ proof }) => proof));

/** True if the ledger has confirmed every grant within the last `ms`, and its entry is known. */
export const isFresh = (record: ConsentRecord, now: number, ms: number): boolean =>
  Object.values(record.choices).every(
    (choice) =>
      choice.choice !== 'granted' || (choice.proof?.hash !== '' && isConfirmed(record, choice, now, ms)),
  );

const isRefusal = (choice: string | null): choice is 'denied' | 'withdrawn' =>
  choice === 'denied' || choice === 'withdrawn';

/** Givers whose grant is not taken over: the person has not been asked. */
const MACHINES: readonly string[] = ['agent', 'automation'];

/** @returns undefined if the person is asked as if for the first time */
function choiceAfter(
  choice: Choice | undefined,
  standing: Standing,
  followsLedger: boolean,
): Choice | undefined {
  const { allowed, reason, proof, policyVersion: version, definition = null, overGpc } = standing;
  const isGranted = choice?.choice === 'granted';
  // A refusal that the ledger does not have yet is the newest choice.
  if (choice?.proof === null || (!isGranted && !followsLedger)) return choice;
  const endReason = reason === 'expired' || reason === 'policy-outdated' ? reason : null;
  const refusal = [reason, standing.choice].find(isRefusal);
  const next = allowed || endReason ? 'granted' : refusal;
  if (!next) return isGranted ? undefined : choice;
  if (next === 'granted' && !choice && MACHINES.includes(standing.given)) return undefined;
  const isSame = choice?.choice === next && choice.proof.seq === proof.seq;
  const at = Date.parse(standing.at ?? '') || (choice?.at ?? 0);
  const until = Date.parse(standing.expiresAt ?? '') || 0;
  const ledgerChoice: Choice = {
    choice: next,
    version,
    definition,
    at,
    until,
    proof,
    ...(overGpc && { overGpc }),
  };
  return { ...(isSame ? choice : ledgerChoice), ...(endReason && { ended: endReason }) };
}

/** True if the person of this browser was erased. The erasure of the account alone ends nothing here. */
function isErased(record: ConsentRecord, standings: readonly Standing[]): boolean {
  if (!standings.some(({ reason }) => reason === 'erased')) return false;
  const isEmpty = Object.keys(record.choices).length === 0;
  return !(record.followsLedger && (isEmpty || standings.some(({ choice }) => choice)));
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
  if (isErased(record, standings)) return null;
  const byPurpose = new Map(standings.map((standing) => [standing.purpose, standing]));
  const ids = new Set([...Object.keys(record.choices), ...byPurpose.keys()]);
  const choices = [...ids].flatMap((id): [string, Choice][] => {
    const standing = byPurpose.get(id);
    const choice = choiceOf(record, id);
    const sentChoice = choiceOf(sentRecord, id);
    const isNewer = sentChoice?.at !== choice?.at || sentChoice?.choice !== choice?.choice;
    const next = standing && !isNewer ? choiceAfter(choice, standing, !!record.followsLedger) : choice;
    return next ? [[id, next]] : [];
  });
  return { ...record, choices: Object.fromEntries(choices) };
}
